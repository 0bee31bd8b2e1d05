/* Tracing of the program's calls, for `zluda trace`. */
#ifndef ZL_TRACE_H
#define ZL_TRACE_H

#include "client.h"

#include <string.h>

/* Whether ZLUDA_TRACE names a folder; set before the program's first call, unset if nothing can be written there. */
extern _Atomic int zl_trace_on;
static inline bool zl_tracing(void)
{
    return !ZL_LIKELY(!atomic_load_explicit(&zl_trace_on, memory_order_relaxed));
}
extern const uint8_t zl_trace_identity[16];

/* A parameter's value, or the first 8 bytes of it. */
#define ZL_TRACE_WORD(word, parameter) memcpy(&(word), &(parameter), sizeof(parameter) < 8 ? sizeof(parameter) : 8)

/* The thread enters entry point `number`; `words` hold its parameters. */
void zl_trace_call(unsigned number, const uint64_t *words, unsigned count);
/* What parameter `index` of that call points to; nothing for a null pointer. */
void zl_trace_value(unsigned index, const void *value, size_t size);
void zl_trace_text(unsigned index, const char *text);
void zl_trace_return(CUresult result);
/* The call in progress launches a kernel with packed arguments. Names the kernel, the first time. */
void zl_trace_launch(zl_function_entry *function, const uint8_t *arguments);

#endif
