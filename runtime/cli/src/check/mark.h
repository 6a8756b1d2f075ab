/* Included first in each file that is compiled by `mpicc --check`. Such a file has calls for each
 * load and store, whose functions are added by `mpicc --check` when it links. Without them, the
 * linker prints the name of this symbol. */
#if !defined(__ASSEMBLER__) && !defined(LONGSHORE_MARK_H)
#define LONGSHORE_MARK_H
#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif
extern const char longshore_link_this_by_mpicc_with_the_option_check;
static const char *const longshore_mark __attribute__((used)) =
    &longshore_link_this_by_mpicc_with_the_option_check;
#ifdef __cplusplus
}
#endif
#endif
