import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0004_counts_and_thoughts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="conversation",
            name="compaction_claim",
            field=models.UUIDField(blank=True, null=True, verbose_name="compaction claimed by"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="compaction_claimed_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="compaction claimed at"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="context_start",
            field=models.PositiveBigIntegerField(default=1, verbose_name="context starts at"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="hold_turn",
            field=models.PositiveIntegerField(
                default=0, verbose_name="compaction waits until turn"
            ),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="memory_revision",
            field=models.PositiveIntegerField(default=0, verbose_name="memory revision"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="next_position",
            field=models.PositiveBigIntegerField(default=1, verbose_name="next position"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="next_request",
            field=models.PositiveIntegerField(default=1, verbose_name="next request number"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="next_turn",
            field=models.PositiveIntegerField(default=1, verbose_name="next turn"),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="conversations",
                to=settings.AUTH_USER_MODEL,
                verbose_name="owner",
            ),
        ),
        migrations.AlterField(
            model_name="conversation",
            name="updated_at",
            field=models.DateTimeField(
                db_index=True, default=django.utils.timezone.now, verbose_name="updated at"
            ),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="after",
            field=models.JSONField(default=dict, verbose_name="state after"),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="at_position",
            field=models.PositiveBigIntegerField(verbose_name="before message"),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="before",
            field=models.JSONField(default=dict, verbose_name="state before"),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="conversation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memory_events",
                to="memory.conversation",
                verbose_name="conversation",
            ),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="detail",
            field=models.JSONField(default=dict, verbose_name="detail"),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="kind",
            field=models.CharField(
                choices=[
                    ("compaction", "compaction"),
                    ("compaction_failed", "compaction failed"),
                    ("reset", "reset"),
                    ("edit", "summary edited"),
                    ("restore", "summary restored"),
                    ("settings", "settings changed"),
                    ("undo", "undo"),
                    ("turn_replaced", "turn replaced"),
                    ("fork", "fork"),
                ],
                max_length=20,
                verbose_name="kind",
            ),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="revision",
            field=models.PositiveIntegerField(verbose_name="revision"),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="summary",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to="memory.summary",
                verbose_name="summary",
            ),
        ),
        migrations.AlterField(
            model_name="memoryevent",
            name="undoes",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="undone_by",
                to="memory.memoryevent",
                verbose_name="takes back",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="active",
            field=models.BooleanField(default=True, verbose_name="active"),
        ),
        migrations.AlterField(
            model_name="message",
            name="content",
            field=models.TextField(blank=True, verbose_name="content"),
        ),
        migrations.AlterField(
            model_name="message",
            name="conversation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="memory.conversation",
                verbose_name="conversation",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="counts",
            field=models.BooleanField(verbose_name="counts as a message"),
        ),
        migrations.AlterField(
            model_name="message",
            name="created_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now, verbose_name="created at"
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="detail",
            field=models.JSONField(blank=True, default=dict, verbose_name="detail"),
        ),
        migrations.AlterField(
            model_name="message",
            name="encoding",
            field=models.CharField(max_length=40, verbose_name="encoding"),
        ),
        migrations.AlterField(
            model_name="message",
            name="name",
            field=models.CharField(blank=True, max_length=200, verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="message",
            name="position",
            field=models.PositiveBigIntegerField(verbose_name="position"),
        ),
        migrations.AlterField(
            model_name="message",
            name="reasoning",
            field=models.TextField(blank=True, verbose_name="thoughts"),
        ),
        migrations.AlterField(
            model_name="message",
            name="reasoning_tokens",
            field=models.PositiveIntegerField(default=0, verbose_name="thoughts (tokens)"),
        ),
        migrations.AlterField(
            model_name="message",
            name="role",
            field=models.CharField(
                choices=[("user", "user"), ("assistant", "assistant"), ("tool", "tool")],
                max_length=10,
                verbose_name="role",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="tokens",
            field=models.PositiveIntegerField(verbose_name="tokens"),
        ),
        migrations.AlterField(
            model_name="message",
            name="tool_call_id",
            field=models.CharField(blank=True, max_length=200, verbose_name="tool call id"),
        ),
        migrations.AlterField(
            model_name="message",
            name="tool_calls",
            field=models.JSONField(blank=True, default=list, verbose_name="tool calls"),
        ),
        migrations.AlterField(
            model_name="message",
            name="turn",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="memory.turn",
                verbose_name="turn",
            ),
        ),
        migrations.AlterField(
            model_name="summary",
            name="author",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to=settings.AUTH_USER_MODEL,
                verbose_name="author",
            ),
        ),
        migrations.AlterField(
            model_name="summary",
            name="carried",
            field=models.PositiveIntegerField(default=0, verbose_name="literals carried"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="conversation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="summaries",
                to="memory.conversation",
                verbose_name="conversation",
            ),
        ),
        migrations.AlterField(
            model_name="summary",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="file",
            field=models.CharField(blank=True, max_length=200, verbose_name="file"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="first_position",
            field=models.PositiveBigIntegerField(verbose_name="first message"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="kind",
            field=models.CharField(
                choices=[
                    ("model", "by the model"),
                    ("archive", "archive of the raw text"),
                    ("human", "edited by hand"),
                ],
                max_length=10,
                verbose_name="kind",
            ),
        ),
        migrations.AlterField(
            model_name="summary",
            name="last_position",
            field=models.PositiveBigIntegerField(verbose_name="last message"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="literals",
            field=models.JSONField(blank=True, default=list, verbose_name="lost literals"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="messages_folded",
            field=models.PositiveIntegerField(verbose_name="messages folded"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="model",
            field=models.CharField(blank=True, max_length=200, verbose_name="model"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="parent",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to="memory.summary",
                verbose_name="made from",
            ),
        ),
        migrations.AlterField(
            model_name="summary",
            name="prompt_version",
            field=models.CharField(blank=True, max_length=40, verbose_name="prompt version"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="seconds",
            field=models.FloatField(default=0, verbose_name="seconds"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="text",
            field=models.TextField(verbose_name="text"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="tokens_after",
            field=models.PositiveIntegerField(verbose_name="tokens after"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="tokens_before",
            field=models.PositiveIntegerField(verbose_name="tokens before"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="turn",
            field=models.PositiveIntegerField(default=0, verbose_name="turn"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="undone",
            field=models.BooleanField(default=False, verbose_name="undone"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="unsupported",
            field=models.JSONField(blank=True, default=list, verbose_name="unsupported literals"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="usage",
            field=models.JSONField(blank=True, default=dict, verbose_name="usage"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="valid",
            field=models.BooleanField(default=True, verbose_name="valid"),
        ),
        migrations.AlterField(
            model_name="summary",
            name="version",
            field=models.PositiveIntegerField(verbose_name="version"),
        ),
    ]
