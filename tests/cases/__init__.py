"""The public bug corpus: cases from real reports, by their ids, and where each is proved.

A case has a test in this package (`test_<kind>_<number>_...`), or a test elsewhere proves it
(COVERED), or it waits for something that is not there yet (LEFT). `test_index.py` checks that each
id is in exactly one of these.
"""

# The numbers of the cases of each kind.
NUMBERS = {
    "TC": (1, 3, 5, 6, 8, 9, 10, 12, 14, 15),
    "CP": (1, 3, 4, 6, 7, 9, 10, 12, 14, 15),
    "CT": (1, 3, 4, 6, 7, 9, 10, 11, 13, 15, 16, 17, 19, 20),
    "SQ": (1, 3, 4, 6, 7, 9, 11, 12, 14, 15, 16, 18, 19, 20, 22, 23, 25, 27, 30),
    "PS": (1, 2, 3, 5, 7, 8, 10, 11, 12, 14, 15, 17, 19, 21, 22, 25),
    "WS": (1, 2, 4, 6, 7, 8, 10, 12, 14),
    "PE": (1, 3, 5, 7, 9, 11, 13, 14, 16),
    "SE": (1, 2, 4, 6, 8, 10),
    "RT": (1, 3, 5, 6, 7, 8),
    "ML": (1, 3),
    "RL": (1, 2, 5),
    "UI": (1, 2, 5, 6),
}
IDS = tuple(f"{kind}-{number:02}" for kind, numbers in NUMBERS.items() for number in numbers)

# Proved by tests elsewhere, exactly as the case asks.
COVERED: dict[str, tuple[str, ...]] = {
    "TC-06": (
        "tests/chatapp/test_socket.py::"
        "test_a_lone_surrogate_becomes_one_replacement_mark_everywhere",
    ),
    "TC-09": (
        "tests/memory/test_tokens.py::"
        "test_an_unknown_model_is_estimated_with_the_default_vocabulary",
    ),
    "SQ-09": (
        "tests/chatapp/test_memory.py::test_compacting_again_without_new_messages_changes_nothing",
    ),
    "SQ-14": (
        "tests/chatapp/test_memory.py::"
        "test_a_failing_summariser_loses_nothing_and_the_chat_goes_on",
    ),
    "SQ-27": ("tests/chatapp/test_memory.py::test_the_next_summary_is_made_of_the_previous_one",),
    "PS-22": (
        "tests/memory/test_window_properties.py::"
        "test_the_first_message_is_the_only_system_message_and_begins_with_the_prompt",
        "tests/memory/test_window_properties.py::"
        "test_no_two_neighbours_on_the_wire_are_both_user_messages",
        "tests/memory/test_wire.py::test_memory_parts_join_the_one_system_message",
    ),
    "WS-01": (
        "tests/chatapp/test_socket.py::test_stop_is_heard_while_the_reply_is_written",
        "tests/chatapp/test_turns.py::test_stop_keeps_the_partial_reply",
    ),
    "WS-02": (
        "tests/chatapp/test_socket.py::test_every_bad_frame_gets_one_error_and_the_socket_lives",
    ),
    "WS-04": (
        "tests/chatapp/test_socket.py::test_four_hundred_pieces_reach_two_pages_without_a_hole",
        "tests/e2e/test_streaming.py::test_frames_that_get_lost_are_asked_for_again",
    ),
    "PE-05": (
        "tests/chatapp/test_turns.py::test_two_sends_at_once_give_one_turn_and_one_busy",
        "tests/chatapp/test_socket.py::test_a_second_message_is_busy_and_nothing_is_stored",
        "tests/chatapp/test_socket.py::"
        "test_a_turn_of_a_dead_process_is_interrupted_when_a_page_opens",
        "tests/chatapp/test_memory.py::test_two_compactions_at_once_make_one_version",
    ),
    "SE-01": (
        "tests/chatapp/test_markdown.py::test_nothing_hostile_becomes_active",
        "tests/chatapp/test_markdown.py::"
        "test_links_keep_only_harmless_schemes_and_do_not_tell_where_they_are",
        "tests/e2e/test_markup.py::test_markup_in_messages_is_shown_and_does_nothing",
    ),
    "SE-04": (
        "tests/chatapp/test_markdown.py::test_an_image_is_not_fetched_but_stays_readable",
        "tests/e2e/test_markup.py::test_markup_in_messages_is_shown_and_does_nothing",
        "tests/e2e/test_markup.py::test_markup_in_the_panel_and_in_a_summary_does_nothing",
        "tests/chatapp/test_access.py::test_every_page_forbids_inline_code_and_foreign_hosts",
    ),
    "SE-06": (
        "tests/chatapp/test_socket.py::test_only_the_exact_origin_may_open_a_socket",
        "tests/chatapp/test_socket.py::test_a_foreign_or_unknown_conversation_is_closed_alike",
        "tests/chatapp/test_large_input.py::"
        "test_a_frame_over_one_mebibyte_closes_the_socket_and_one_below_does_not",
    ),
    "SE-08": (
        "tests/chatapp/test_access.py::test_a_foreign_conversation_is_as_if_it_did_not_exist",
        "tests/chatapp/test_access.py::test_the_list_and_the_search_show_only_ones_own",
        "tests/chatapp/test_socket.py::test_a_foreign_or_unknown_conversation_is_closed_alike",
    ),
}

_RETRIEVAL = "needs retrieval"
_LEDGER = "needs the long-term memory"
LEFT: dict[str, str] = {
    "RT-01": _RETRIEVAL,
    "RT-03": _RETRIEVAL,
    "RT-05": _RETRIEVAL,
    "RT-06": _RETRIEVAL,
    "RT-07": _RETRIEVAL,
    "RT-08": _RETRIEVAL,
    "ML-01": _LEDGER,
    "ML-03": _LEDGER,
}
