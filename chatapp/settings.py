"""Settings of Palimpsest, all from the environment; the README lists every variable."""

from pathlib import Path
from typing import Any

import dj_database_url
from django.utils.translation import gettext_lazy as _

from chatapp import env

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.text("VAR_DIR", str(BASE_DIR / "var")))

DEBUG = env.flag("DEBUG")
SECRET_KEY = env.secret("SECRET_KEY", VAR_DIR / "secret_key")
ALLOWED_HOSTS = env.listed("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
# Exact origins (scheme, host, port) from which sockets may be opened and forms sent, beside the
# origin of the page itself.
TRUSTED_ORIGINS = env.listed("TRUSTED_ORIGINS")
CSRF_TRUSTED_ORIGINS = TRUSTED_ORIGINS

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "memory.apps.MemoryConfig",
    "chatapp.apps.ChatappConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "chatapp.middleware.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "chatapp.middleware.DeletedMeanwhile",
]

ROOT_URLCONF = "chatapp.urls"
ASGI_APPLICATION = "chatapp.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chatapp.context.interface",
            ],
        },
    },
]

DATABASES: dict[str, Any] = {
    "default": dj_database_url.parse(
        env.text("DATABASE_URL", f"sqlite:///{VAR_DIR / 'palimpsest.sqlite3'}"),
        conn_health_checks=True,
    )
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        # Writers queue at BEGIN instead of failing in the middle; readers never wait.
        "transaction_mode": "IMMEDIATE",
        # Less than the 15 s after which a turn without a sign of life counts as left.
        "timeout": 10,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # A file, not memory: the tests' threads then lock as the application's do.
    DATABASES["default"]["TEST"] = {"NAME": str(VAR_DIR / "test.sqlite3")}

REDIS_URL = env.text("REDIS_URL")
# Layers lose messages silently past their capacity: it is high, and clients notice a gap.
CHANNEL_LAYERS: dict[str, Any] = {
    "default": {
        "BACKEND": "chatapp.redis_layer.RedisLayer",
        "CONFIG": {"hosts": [REDIS_URL], "capacity": 1_000},
    }
    if REDIS_URL
    else {"BACKEND": "chatapp.layers.MemoryLayer", "CONFIG": {"capacity": 1_000}}
}
# How many processes serve this application; more than one needs REDIS_URL and PostgreSQL.
PROCESSES = env.number("PROCESSES", 1, least=1)

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.text("TIME_ZONE", "UTC")
USE_TZ = True
USE_THOUSAND_SEPARATOR = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = BASE_DIR / "staticfiles"

# Bytes of a form: the admin shows and takes back whole texts.
DATA_UPLOAD_MAX_MEMORY_SIZE = 20 * 1024 * 1024

# Behind a proxy that speaks TLS: HTTPS=1 makes cookies secure and trusts X-Forwarded-Proto.
HTTPS = env.flag("HTTPS")
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = env.number("HSTS_SECONDS", 3_600)
    # Speaks for every subdomain and cannot be taken back soon, so only the owner can say it.
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = env.flag("HSTS_SUBDOMAINS")
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# The provider. With no address and no key the demo model answers.
LLM_BASE_URL = env.text("LLM_BASE_URL")
LLM_API_KEY = env.text("LLM_API_KEY") or env.text("OPENAI_API_KEY")
LLM_MODEL = env.text("LLM_MODEL")
LLM_CONTEXT_WINDOW = env.number("LLM_CONTEXT_WINDOW", least=64)
# Further models of the same server that a conversation may choose.
LLM_MODELS = env.listed("LLM_MODELS")
SUMMARY_MODEL = env.text("SUMMARY_MODEL")
SUMMARY_FALLBACK_MODEL = env.text("SUMMARY_FALLBACK_MODEL")
# Where the raw messages of compactions are kept, for policies that offload them.
OFFLOAD_DIR = VAR_DIR / "offload"
# Whether the summariser also names conversations after their first exchange.
AUTO_TITLE = env.flag("AUTO_TITLE", True)
# What kind of server it is, and where it differs from its kind (None: as its kind); chatapp.servers
LLM_SERVER = env.choice("LLM_SERVER", ("openai", "deepseek", "ollama", "vllm", "llamacpp", "other"))
LLM_REASONING_FIELD = env.word("LLM_REASONING_FIELD")
LLM_NULL_CONTENT = env.optional_flag("LLM_NULL_CONTENT")
LLM_STREAM_USAGE = env.optional_flag("LLM_STREAM_USAGE")
# Whatever else the body of a turn's requests should have.
LLM_EXTRA_BODY = env.json_object(
    "LLM_EXTRA_BODY", never=("model", "messages", "stream", "stream_options", "tools")
)
# How often a request is sent again that failed before the first piece of a reply, and the longest
# pause before that.
LLM_RETRIES = env.number("LLM_RETRIES", 2)
LLM_RETRY_SECONDS = env.seconds("LLM_RETRY_SECONDS", 20)
# The limits of one turn: requests, and tokens that its calls, results and texts may add (S0).
TURN_MAX_STEPS = env.number("TURN_MAX_STEPS", 10, least=1)
TURN_TOKENS = env.number("TURN_TOKENS", 8_000, least=100)
LLM_CONNECT_SECONDS = env.seconds("LLM_CONNECT_SECONDS", 5)
LLM_FIRST_TOKEN_SECONDS = env.seconds("LLM_FIRST_TOKEN_SECONDS", 120)
LLM_IDLE_SECONDS = env.seconds("LLM_IDLE_SECONDS", 60)
LLM_TOTAL_SECONDS = env.seconds("LLM_TOTAL_SECONDS", 900)
# How long an inline compaction may hold up a request before the archive stands in.
SUMMARY_SECONDS = env.seconds("SUMMARY_SECONDS", 20)
# The pause of the demo model between two pieces of its answer.
DEMO_SECONDS_PER_TOKEN = env.seconds("DEMO_SECONDS_PER_TOKEN", 0.01)

DEFAULT_SYSTEM_PROMPT = env.text(
    "SYSTEM_PROMPT",
    "You are a helpful assistant. Answer in the language of the user's newest message.",
)
# With the demo model few short messages should show a fold; a real one goes by tokens (S3).
DEFAULT_POLICY = env.text(
    "MEMORY_POLICY", "hybrid-tokens" if LLM_BASE_URL or LLM_API_KEY else "hybrid"
)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "WARNING")},
    "loggers": {"httpx2": {"level": "WARNING"}},
}
