from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0004_counts_and_thoughts"),
    ]

    operations = [
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
            ),
        ),
    ]
