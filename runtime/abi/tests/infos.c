/* Infos. */
#include "check.h"

/* Communicators and windows say what memory calls take. */
static void kinds_of_memory(void) {
  char value[MPI_MAX_INFO_VAL] = "";
  int flag, length;
  MPI_Win win;
  MPI_Comm dup;
  MPI_Info infos[4];
  OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Win_get_info(win, &infos[0]));
  OK(MPI_Comm_get_info(MPI_COMM_WORLD, &infos[1]));
  OK(MPI_Comm_get_info(dup, &infos[2]));
  OK(MPI_Comm_get_info(MPI_COMM_SELF, &infos[3]));
  for (int i = 0; i < 4; i++) {
    length = sizeof value;
    OK(MPI_Info_get_string(infos[i], "mpi_memory_alloc_kinds", &length, value, &flag));
    CHECK(flag && strcmp(value, "mpi,system") == 0);
    OK(MPI_Info_free(&infos[i]));
  }
  /* The kinds are the library's to say. */
  OK(MPI_Info_create(&infos[0]));
  OK(MPI_Info_set(infos[0], "mpi_memory_alloc_kinds", "cuda"));
  OK(MPI_Comm_set_info(dup, infos[0]));
  OK(MPI_Win_set_info(win, infos[0]));
  OK(MPI_Info_free(&infos[0]));
  OK(MPI_Comm_get_info(dup, &infos[0]));
  length = sizeof value;
  OK(MPI_Info_get_string(infos[0], "mpi_memory_alloc_kinds", &length, value, &flag));
  CHECK(flag && strcmp(value, "mpi,system") == 0);
  OK(MPI_Info_free(&infos[0]));
  OK(MPI_Comm_free(&dup));
  OK(MPI_Win_free(&win));
}

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
  kinds_of_memory();
  int code = end();
  OK(MPI_Info_free(&dup));
  return code;
}
