/* The functions that the compiler of a program calls before loads and stores, where it is told to
 * by `mpicc --check`.
 *
 * Each of them looks whether the checks of libmpi_abi watch the page, and mostly they don't. All of
 * it is in C, and compiled with the program, since only C knows the address of its caller. It is
 * valid as C and as C++. As a header of the system it gets no warnings, whatever the program's
 * options ask for.
 *
 * Left out: atomics of 16 bytes. */
#pragma GCC system_header

#if defined(__clang__)
#define LONGSHORE_PLAIN __attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation))
#else
#pragma GCC optimize("O2")
#define LONGSHORE_PLAIN __attribute__((no_sanitize_thread))
#endif
#define LONGSHORE_INLINE static inline LONGSHORE_PLAIN __attribute__((always_inline))
#define LONGSHORE_PLACE __builtin_return_address(0)

#ifdef __cplusplus
extern "C" {
#endif

/* What libmpi_abi exports for this file. */
const unsigned short *longshore_watched_pages(void);
void longshore_touched(const void *start, __SIZE_TYPE__ bytes, int stores, const void *place);

/* The symbol that mark.h asks for. */
extern const char longshore_link_this_by_mpicc_with_the_option_check;
const char longshore_link_this_by_mpicc_with_the_option_check = 0;

/* The number of watched areas in each page, by the last 16 bits of its number. No page is watched
 * before the first file of the program is initialized. */
static const unsigned short longshore_none[1 << 16] = {0};
static const unsigned short *longshore_watched = longshore_none;

LONGSHORE_INLINE int longshore_is_watched(__UINTPTR_TYPE__ address) {
  return longshore_watched[address >> 12 & 0xffff] != 0;
}

/* An access of at most 16 bytes. */
LONGSHORE_INLINE void longshore_touch(const volatile void *start, __SIZE_TYPE__ bytes, int stores,
                                      const void *place) {
  if (__builtin_expect(longshore_is_watched((__UINTPTR_TYPE__)start), 0))
    longshore_touched((const void *)start, bytes, stores, place);
}

/* An access of any length. */
LONGSHORE_INLINE void longshore_touch_range(const volatile void *start, __SIZE_TYPE__ bytes,
                                            int stores, const void *place) {
  __UINTPTR_TYPE__ at = (__UINTPTR_TYPE__)start, end = at + bytes;
  for (; at < end; at = (at | 4095) + 1)
    if (longshore_is_watched(at)) {
      longshore_touched((const void *)start, bytes, stores, place);
      return;
    }
}

LONGSHORE_PLAIN void __tsan_init(void) { longshore_watched = longshore_watched_pages(); }
LONGSHORE_PLAIN void __tsan_func_entry(void *caller) { (void)caller; }
LONGSHORE_PLAIN void __tsan_func_exit(void) {}
LONGSHORE_PLAIN void __tsan_ignore_thread_begin(void) {}
LONGSHORE_PLAIN void __tsan_ignore_thread_end(void) {}

#define LONGSHORE_ACCESS(name, bytes, stores)              \
  LONGSHORE_PLAIN void __tsan_##name##bytes(void *start) { \
    longshore_touch(start, bytes, stores, LONGSHORE_PLACE); \
  }
#define LONGSHORE_ALIGNMENTS(name, bytes, stores) \
  LONGSHORE_ACCESS(name, bytes, stores)           \
  LONGSHORE_ACCESS(unaligned_##name, bytes, stores)
#define LONGSHORE_ACCESSES(bytes)              \
  LONGSHORE_ALIGNMENTS(read, bytes, 0)           \
  LONGSHORE_ALIGNMENTS(write, bytes, 1)          \
  LONGSHORE_ALIGNMENTS(read_write, bytes, 1)     \
  LONGSHORE_ALIGNMENTS(volatile_read, bytes, 0)  \
  LONGSHORE_ALIGNMENTS(volatile_write, bytes, 1)
LONGSHORE_ACCESSES(1)
LONGSHORE_ACCESSES(2)
LONGSHORE_ACCESSES(4)
LONGSHORE_ACCESSES(8)
LONGSHORE_ACCESSES(16)

LONGSHORE_PLAIN void __tsan_read_range(void *start, __SIZE_TYPE__ bytes) {
  longshore_touch_range(start, bytes, 0, LONGSHORE_PLACE);
}
LONGSHORE_PLAIN void __tsan_write_range(void *start, __SIZE_TYPE__ bytes) {
  longshore_touch_range(start, bytes, 1, LONGSHORE_PLACE);
}
LONGSHORE_PLAIN void __tsan_vptr_read(void **start) {
  longshore_touch(start, sizeof(void *), 0, LONGSHORE_PLACE);
}
LONGSHORE_PLAIN void __tsan_vptr_update(void **start, void *value) {
  (void)value;
  longshore_touch(start, sizeof(void *), 1, LONGSHORE_PLACE);
}

/* The C library's functions that compilers call for assignments, under these names and, in the
 * files that are linked with this one, under their own. */
#define LONGSHORE_COPY_AS(alias, name)                                                        \
  LONGSHORE_PLAIN void *alias##name(void *to, const void *from, __SIZE_TYPE__ bytes) {        \
    longshore_touch_range(from, bytes, 0, LONGSHORE_PLACE);                                   \
    longshore_touch_range(to, bytes, 1, LONGSHORE_PLACE);                                     \
    return __real_##name(to, from, bytes);                                                    \
  }
#define LONGSHORE_COPY(name)                                                                  \
  void *__real_##name(void *to, const void *from, __SIZE_TYPE__ bytes);                       \
  LONGSHORE_COPY_AS(__wrap_, name)                                                            \
  LONGSHORE_COPY_AS(__tsan_, name)
LONGSHORE_COPY(memcpy)
LONGSHORE_COPY(memmove)
void *__real_memset(void *to, int value, __SIZE_TYPE__ bytes);
#define LONGSHORE_SET_AS(alias)                                                               \
  LONGSHORE_PLAIN void *alias##memset(void *to, int value, __SIZE_TYPE__ bytes) {             \
    longshore_touch_range(to, bytes, 1, LONGSHORE_PLACE);                                     \
    return __real_memset(to, value, bytes);                                                   \
  }
LONGSHORE_SET_AS(__wrap_)
LONGSHORE_SET_AS(__tsan_)

/* Atomics, all of the strongest order. */
#define LONGSHORE_FETCH(bits, type, name, operation)                                          \
  LONGSHORE_PLAIN type __tsan_atomic##bits##_##name(volatile type *at, type value, int order) { \
    (void)order;                                                                              \
    longshore_touch(at, sizeof *at, 1, LONGSHORE_PLACE);                                      \
    return operation(at, value, __ATOMIC_SEQ_CST);                                            \
  }
#define LONGSHORE_EXCHANGE(bits, type, kind)                                                  \
  LONGSHORE_PLAIN int __tsan_atomic##bits##_compare_exchange_##kind(                          \
      volatile type *at, type *expected, type value, int order, int otherwise) {              \
    (void)order, (void)otherwise;                                                             \
    int stores = __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,        \
                                             __ATOMIC_SEQ_CST);                               \
    longshore_touch(at, sizeof *at, stores, LONGSHORE_PLACE);                                 \
    return stores;                                                                            \
  }
#define LONGSHORE_ATOMICS(bits, type)                                                         \
  LONGSHORE_PLAIN type __tsan_atomic##bits##_load(const volatile type *at, int order) {       \
    (void)order;                                                                              \
    longshore_touch(at, sizeof *at, 0, LONGSHORE_PLACE);                                      \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                             \
  }                                                                                           \
  LONGSHORE_PLAIN void __tsan_atomic##bits##_store(volatile type *at, type value, int order) { \
    (void)order;                                                                              \
    longshore_touch(at, sizeof *at, 1, LONGSHORE_PLACE);                                      \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                            \
  }                                                                                           \
  LONGSHORE_FETCH(bits, type, exchange, __atomic_exchange_n)                                  \
  LONGSHORE_FETCH(bits, type, fetch_add, __atomic_fetch_add)                                  \
  LONGSHORE_FETCH(bits, type, fetch_sub, __atomic_fetch_sub)                                  \
  LONGSHORE_FETCH(bits, type, fetch_and, __atomic_fetch_and)                                  \
  LONGSHORE_FETCH(bits, type, fetch_or, __atomic_fetch_or)                                    \
  LONGSHORE_FETCH(bits, type, fetch_xor, __atomic_fetch_xor)                                  \
  LONGSHORE_FETCH(bits, type, fetch_nand, __atomic_fetch_nand)                                \
  LONGSHORE_EXCHANGE(bits, type, strong)                                                      \
  LONGSHORE_EXCHANGE(bits, type, weak)                                                        \
  LONGSHORE_PLAIN type __tsan_atomic##bits##_compare_exchange_val(                            \
      volatile type *at, type expected, type value, int order, int otherwise) {               \
    (void)order, (void)otherwise;                                                             \
    int stores = __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST,       \
                                             __ATOMIC_SEQ_CST);                               \
    longshore_touch(at, sizeof *at, stores, LONGSHORE_PLACE);                                 \
    return expected;                                                                          \
  }
LONGSHORE_ATOMICS(8, __UINT8_TYPE__)
LONGSHORE_ATOMICS(16, __UINT16_TYPE__)
LONGSHORE_ATOMICS(32, __UINT32_TYPE__)
LONGSHORE_ATOMICS(64, __UINT64_TYPE__)
LONGSHORE_PLAIN void __tsan_atomic_thread_fence(int order) {
  (void)order;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
LONGSHORE_PLAIN void __tsan_atomic_signal_fence(int order) {
  (void)order;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#ifdef __cplusplus
}
#endif
