/* Infos. */
#include "check.h"

int main(int argc, char **argv) {
  MPI_Info info, dup;
  char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL], large[2 * MPI_MAX_INFO_VAL];
  int n, flag, length;
  /* Before MPI_Init. */
  OK(MPI_Info_create(&info));
  begin(&argc, &argv);
  OK(MPI_Info_set(info, "first", "1"));
  OK(MPI_Info_set(info, " second ", " two words "));
  OK(MPI_Info_set(info, "first", "one"));
  OK(MPI_Info_get_nkeys(info, &n));
  CHECK(n == 2);
  OK(MPI_Info_get_nthkey(info, 1, key));
  CHECK(!strcmp(key, "second"));
  FAILS(MPI_ERR_ARG, MPI_Info_get_nthkey(info, 2, key));
  length = MPI_MAX_INFO_VAL;
  OK(MPI_Info_get_string(info, "second", &length, value, &flag));
  CHECK(flag && !strcmp(value, "two words") && length == 10);
  /* As much as there is room for. */
  length = 4;
  OK(MPI_Info_get_string(info, "second", &length, value, &flag));
  CHECK(flag && !strcmp(value, "two") && length == 10);
  length = 0;
  OK(MPI_Info_get_string(info, "second", &length, 0, &flag));
  CHECK(flag && length == 10);
  OK(MPI_Info_get_string(info, "none", &length, value, &flag));
  CHECK(!flag && length == 10);
  OK(MPI_Info_get_valuelen(info, "first", &length, &flag));
  CHECK(flag && length == 3);
  OK(MPI_Info_dup(info, &dup));
  OK(MPI_Info_delete(info, "first"));
  FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "first"));
  OK(MPI_Info_get_nkeys(dup, &n));
  CHECK(n == 2);
  memset(large, 'x', sizeof large - 1);
  large[sizeof large - 1] = 0;
  FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, large, "1"));
  FAILS(MPI_ERR_INFO_VALUE, MPI_Info_set(info, "key", large));
  FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "1"));
  OK(MPI_Info_free(&info));
  CHECK(info == MPI_INFO_NULL);
  FAILS(MPI_ERR_INFO, MPI_Info_free(&info));
  length = MPI_MAX_INFO_VAL;
  OK(MPI_Info_get_string(MPI_INFO_ENV, "command", &length, value, &flag));
  CHECK(flag && strstr(value, "infos"));
  int code = end();
  OK(MPI_Info_free(&dup));
  return code;
}
