"""The command that takes back the earlier log blocks of an instant, as writers of table version 6 append it."""

from __future__ import annotations

from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock


def rollback_block(*, instant_time: str, target_instant_time: str) -> LogBlock:
    """Make the command block of a rollback."""
    return LogBlock(
        block_type=BlockType.COMMAND,
        headers={
            HeaderKey.INSTANT_TIME: instant_time,
            HeaderKey.TARGET_INSTANT_TIME: target_instant_time,
            HeaderKey.COMMAND_BLOCK_TYPE: "0",
        },
    )
