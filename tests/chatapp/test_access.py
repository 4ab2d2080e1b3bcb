"""Who may see and do what: every address, one set-up for allowed and denied."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from chatapp import urls
from memory.models import Conversation, Message, Summary, Turn

# Addresses that anyone may open.
PUBLIC = {"icon", "login", "logout", "local_login", "set_language", "set_theme"}


def own_patterns(patterns: list[Any]) -> list[URLPattern]:
    """The application's own addresses, the admin's left out."""
    found = []
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "admin":
                found += own_patterns(pattern.url_patterns)
        else:
            found.append(pattern)
    return found


PATTERNS = {pattern.name: pattern for pattern in own_patterns(get_resolver(urls).url_patterns)}
OF_CONVERSATION = sorted(pattern.name for pattern in own_patterns(urls.conversation))


def address(name: str, pk: Any) -> str:
    numbered = "<int:" in str(PATTERNS[name].pattern)
    return reverse(name, args=[pk, 1] if numbered else [pk])


@pytest.fixture
def filled(conversation: Conversation) -> Conversation:
    turn = Turn.objects.create(conversation=conversation, number=1, client_id="1", state="complete")
    for position, role in ((1, "user"), (2, "assistant")):
        Message.objects.create(
            conversation=conversation,
            turn=turn,
            position=position,
            role=role,
            content="a secret word",
            tokens=8,
            encoding="o200k_base",
            counts=True,
        )
    Conversation.objects.filter(pk=conversation.pk).update(next_position=3, next_turn=2)
    conversation.refresh_from_db()
    return conversation


def state() -> Any:
    """Everything that a request could have changed."""
    return (
        list(Conversation.objects.values()),
        list(Message.objects.values()),
        list(Turn.objects.values()),
        list(Summary.objects.values()),
    )


@pytest.mark.django_db(transaction=True)
def test_an_anonymous_visitor_is_sent_to_the_sign_in_page(
    client: Client, filled: Conversation
) -> None:
    before = state()
    for name in PATTERNS.keys() - PUBLIC:
        url = address(name, filled.pk) if name in OF_CONVERSATION else reverse(name)
        for method in (client.get, client.post):
            response = method(url)
            assert response.status_code == 302, name
            assert response["Location"].startswith(reverse("login")), name
    assert state() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("staff", [False, True])
def test_a_foreign_conversation_is_as_if_it_did_not_exist(
    staff: bool, client: Client, filled: Conversation, other_user: Any
) -> None:
    other_user.is_staff = other_user.is_superuser = staff
    other_user.save()
    client.force_login(other_user)
    before = state()
    assert len(OF_CONVERSATION) >= 13
    for name in OF_CONVERSATION:
        codes = set()
        for method in (client.get, client.post):
            for pk in (filled.pk, "00000000-0000-4000-8000-000000000000"):
                response = method(address(name, pk), {"text": "x", "title": "x"})
                codes.add((method, response.status_code))
                assert b"secret" not in response.content, name
        # The view's own method finds nothing, the other is refused for any conversation alike.
        assert {code for _method, code in codes} in ({404}, {404, 405}), name
        assert len(codes) == 2, name
    assert state() == before


@pytest.mark.django_db(transaction=True)
def test_the_owner_sees_all_pages(client: Client, filled: Conversation, user: Any) -> None:
    client.force_login(user)
    for name in ("conversation", "transcript", "panel_context", "context_json"):
        response = client.get(address(name, filled.pk))
        assert response.status_code == 200, name
        assert b"a secret word" in response.content, name
    assert b"a secret word" not in client.get(address("conversation_delete", filled.pk)).content
    listed = client.get(reverse("conversation_list"), {"q": "secret"})
    assert str(filled.pk) in listed.content.decode()


@pytest.mark.django_db
def test_the_list_and_the_search_show_only_ones_own(
    client: Client, filled: Conversation, other_user: Any
) -> None:
    client.force_login(other_user)
    for query in ("", "secret"):
        response = client.get(reverse("conversation_list"), {"q": query})
        assert str(filled.pk) not in response.content.decode()
    assert client.get(reverse("home")).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_form_without_its_token_is_refused(filled: Conversation, user: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    for name in OF_CONVERSATION:
        assert client.post(address(name, filled.pk)).status_code in (403, 405)


LOCAL = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "localhost:8000"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("debug", "meta", "allowed"),
    [
        (True, LOCAL, True),
        (True, {"REMOTE_ADDR": "::1", "HTTP_HOST": "[::1]:8000"}, True),
        (True, {"REMOTE_ADDR": "::ffff:127.0.0.1", "HTTP_HOST": "127.0.0.1"}, True),
        (False, LOCAL, False),
        (True, LOCAL | {"REMOTE_ADDR": "192.0.2.7"}, False),
        (True, LOCAL | {"REMOTE_ADDR": ""}, False),
        (True, LOCAL | {"HTTP_HOST": "chat.example"}, False),
        (True, LOCAL | {"HTTP_X_FORWARDED_FOR": "192.0.2.7"}, False),
        (True, LOCAL | {"HTTP_FORWARDED": "for=192.0.2.7"}, False),
        (True, LOCAL | {"HTTP_X_REAL_IP": "192.0.2.7"}, False),
    ],
)
def test_the_local_user_is_for_this_machine_in_development_only(
    debug: bool, meta: dict[str, str], allowed: bool, client: Client, settings: Any
) -> None:
    settings.DEBUG = debug
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "chat.example"]
    page = client.get(reverse("login"), **meta)
    assert (reverse("local_login") in page.content.decode()) is allowed
    response = client.post(reverse("local_login"), **meta)
    assert response.status_code == (302 if allowed else 403)
    made = get_user_model().objects.filter(username="local")
    assert made.exists() is allowed
    if allowed:
        local = made.get()
        assert not local.has_usable_password()
        assert local.is_staff
        assert not local.is_superuser
        for name in ("conversation", "message", "summary", "memoryevent"):
            listed = client.get(reverse(f"admin:memory_{name}_changelist"), **meta)
            assert listed.status_code == 200
        assert client.get(reverse("admin:auth_user_changelist"), **meta).status_code == 403


@pytest.mark.django_db
def test_every_page_forbids_inline_code_and_foreign_hosts(
    client: Client, filled: Conversation, user: Any
) -> None:
    client.force_login(user)
    for url in (reverse("home"), address("conversation", filled.pk), "/nowhere/"):
        response = client.get(url, follow=True)
        policy = response["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        html = response.content.decode()
        assert " style=" not in html
        assert "<script>" not in html
        assert "onclick=" not in html
