/* Words in the text of edits, for callers that do not parse them. */
#ifndef QKV_BASE_EDIT_WORDS_H
#define QKV_BASE_EDIT_WORDS_H

/* Does an edit in the text have this operation and argument, "patch:" and "clean"? */
int qkv_edits_say(const char *edits, const char *operation, const char *argument);

#endif
