"""Addresses. Every page needs a signed-in user, except signing in."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from chatapp import actions, signin, views, wholes

conversation = [
    path("", views.conversation, name="conversation"),
    path("transcript/", views.transcript_fragment, name="transcript"),
    path("rename/", views.conversation_rename, name="conversation_rename"),
    path("delete/", actions.conversation_delete, name="conversation_delete"),
    path("panel/context/", views.panel_context, name="panel_context"),
    path("panel/summary/", views.panel_summary, name="panel_summary"),
    path("panel/timeline/", views.panel_timeline, name="panel_timeline"),
    path("panel/settings/", views.panel_settings, name="panel_settings"),
    path("summaries/<int:version>/edit/", actions.summary_edit, name="summary_edit"),
    path("summaries/<int:version>/restore/", actions.summary_restore, name="summary_restore"),
    path("fork/<int:position>/", actions.conversation_fork, name="conversation_fork"),
    path("context.json", views.context_json, name="context_json"),
    path("requests/<int:number>/context.json", views.context_json, name="request_json"),
    path("messages/<int:position>/whole.txt", wholes.message_whole, name="message_whole"),
    path("messages/", actions.message_send, name="message_send"),
    path("turns/<int:number>/stop/", actions.turn_stop, name="turn_stop"),
    path("turns/<int:number>/retry/", actions.turn_retry, name="turn_retry"),
    path("turns/<int:number>/edit/", actions.turn_edit, name="turn_edit"),
    path("demo/refund/", actions.demo_refund, name="demo_refund_here"),
    path("memory/reset/", actions.memory_reset, name="memory_reset"),
    path("memory/undo/", actions.memory_undo, name="memory_undo"),
    path("memory/compact/", actions.memory_compact, name="memory_compact"),
]

# Asked for where a page names no icon: the admin's, and plain text and JSON.
icon = RedirectView.as_view(url=static("img/icon.svg"))

urlpatterns = [
    path("favicon.ico", login_not_required(icon), name="icon"),
    path("", views.home, name="home"),
    path("list/", views.conversation_list, name="conversation_list"),
    path("demo/refund/", actions.demo_refund, name="demo_refund"),
    path("new/", views.conversation_new, name="conversation_new"),
    path("c/<uuid:conversation_id>/", include(conversation)),
    path("login/", signin.SignIn.as_view(), name="login"),
    path("login/local/", signin.local_login, name="local_login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("theme/", views.set_theme, name="set_theme"),
    path("language/", login_not_required(set_language), name="set_language"),
    path("admin/", admin.site.urls),
]
