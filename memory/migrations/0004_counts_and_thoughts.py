from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0003_agent"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="model",
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name="turn",
            name="thoughts",
            field=models.TextField(blank=True),
        ),
    ]
