# SPDX-License-Identifier: Apache-2.0
"""What is recorded of a reservation of volumes, beside its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from blazar.model.lease import Content

VOLUME_IDS, VOLUME_TYPES, IMAGE_IDS, BACKUP_IDS = "volume_ids", "volume_types", "image_ids", "backup_ids"
TRIES, COPIED, MADE = "tries", "copied", "made"


@dataclass(frozen=True, slots=True)
class Record:
    """The ids of its volumes, their types, how many volumes have failed, and the copies of them before the end.

    ``copied`` says how often a copy of each name was begun; ``made`` how many volumes a pool has given, by calendar id:
    those too that users have deleted since, which are not made again.
    """

    ids: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tries: int = 0
    images: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    copied: Mapping[str, int] = field(default_factory=dict, hash=False)
    made: Mapping[int, int] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, content: Content) -> Record:
        """Return what a reservation keeps."""
        ids, types, images, backups = (
            _texts(content, key) for key in (VOLUME_IDS, VOLUME_TYPES, IMAGE_IDS, BACKUP_IDS)
        )
        tries, made = content.values.get(TRIES), _numbers(content, MADE)
        by_pool = {int(key): count for key, count in made.items() if key.isdigit()}
        number = tries if isinstance(tries, int) else 0
        return cls(ids, types, number, images, backups, _numbers(content, COPIED), by_pool)

    @property
    def content(self) -> Content:
        """Return it as a reservation keeps it."""
        more: dict[str, object] = {
            TRIES: self.tries,
            IMAGE_IDS: list(self.images),
            BACKUP_IDS: list(self.backups),
            COPIED: dict(self.copied),
            MADE: {str(key): count for key, count in self.made.items()},
        }
        given = {key: value for key, value in more.items() if value}
        return Content({VOLUME_IDS: list(self.ids), VOLUME_TYPES: list(self.types), **given})

    def with_volumes(self, ids: Iterable[str]) -> Record:
        """Return it with more volumes."""
        return replace(self, ids=(*self.ids, *ids))

    def with_made(self, resource_id: int, count: int) -> Record:
        """Return it with the number of volumes that a pool has given."""
        return replace(self, made={**self.made, resource_id: count})

    def with_begun(self, name: str) -> Record:
        """Return it with a copy of this name begun once more."""
        return replace(self, copied={**self.copied, name: self.copied.get(name, 0) + 1})

    def with_image(self, image_id: str) -> Record:
        """Return it with an image that is complete."""
        return self if image_id in self.images else replace(self, images=(*self.images, image_id))

    def with_backup(self, backup_id: str) -> Record:
        """Return it with a backup that is complete."""
        return self if backup_id in self.backups else replace(self, backups=(*self.backups, backup_id))


def _numbers(content: Content, key: str) -> Mapping[str, int]:
    value = content.values.get(key)
    return {str(k): v for k, v in value.items() if isinstance(v, int)} if isinstance(value, Mapping) else {}


def _texts(content: Content, key: str) -> tuple[str, ...]:
    value = content.values.get(key)
    return tuple(str(each) for each in value) if isinstance(value, list | tuple) else ()
