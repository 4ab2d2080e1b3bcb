from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_out


class ChatappConfig(AppConfig):
    name = "chatapp"
    verbose_name = "Palimpsest"

    def ready(self) -> None:
        from chatapp import checks, signin  # noqa: F401  (registers the system checks)

        user_logged_out.connect(signin.close_sockets, dispatch_uid="close-sockets")
