from typing import Any

from django.apps import AppConfig
from django.db import transaction
from django.db.models.signals import post_delete
from django.utils.translation import gettext_lazy as _


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = _("Memory")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_delete.connect(_forget, sender="memory.Conversation")


def _forget(instance: Any, **_more: Any) -> None:
    """The file with the raw messages goes with its conversation, also with that of its owner."""
    from memory import offload

    conversation = instance.pk
    transaction.on_commit(lambda: offload.remove(conversation))
