/* Handles as integers, error handlers of every kind of object, hints, deprecated calls, and the
   infos of sessions and hardware (MPI-5.0 chapters 7, 9, 10, 11 and 20). */
#include "check.h"

static int calls, last;

static void of_comm(MPI_Comm *comm, int *code, ...) { calls += 1, last = *code, (void)comm; }
static void of_win(MPI_Win *win, int *code, ...) { calls += 10, last = *code, (void)win; }
static void of_file(MPI_File *file, int *code, ...) { calls += 100, last = *code, (void)file; }
static void of_session(MPI_Session *session, int *code, ...) { calls += 1000, last = *code, (void)session; }

/* A handle has an integer, and the integer has the handle. */
#define BOTH_WAYS(kind, handle)                                     \
  do {                                                              \
    int number_ = MPI_##kind##_toint(handle);                       \
    CHECK(MPI_##kind##_fromint(number_) == (handle));               \
    CHECK((uintptr_t)(handle) >= 4096 || number_ == (intptr_t)(handle)); \
  } while (0)

static void add(void *in, void *inout, int *count, MPI_Datatype *type) { (void)in, (void)inout, (void)count, (void)type; }

static void integers(void) {
  MPI_Errhandler handler;
  MPI_Group group;
  MPI_Info info;
  MPI_Op op;
  MPI_Request request;
  MPI_Message message;
  MPI_Session session;
  MPI_Win win;
  MPI_Comm comm;
  MPI_Datatype type;
  int value = 0, room, *base;
  OK(MPI_Comm_create_errhandler(of_comm, &handler));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
  OK(MPI_Info_create(&info));
  OK(MPI_Op_create(add, 1, &op));
  OK(MPI_Irecv(&room, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
  OK(MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
  OK(MPI_Mprobe(0, 1, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE));
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Type_contiguous(2, MPI_INT, &type));
  BOTH_WAYS(Errhandler, handler);
  BOTH_WAYS(Group, group);
  BOTH_WAYS(Info, info);
  BOTH_WAYS(Op, op);
  BOTH_WAYS(Request, request);
  BOTH_WAYS(Message, message);
  BOTH_WAYS(Session, session);
  BOTH_WAYS(Win, win);
  BOTH_WAYS(Comm, comm);
  BOTH_WAYS(Type, type);
  /* Different objects have different integers, whatever their kinds. */
  CHECK(MPI_Comm_toint(comm) != MPI_Win_toint(win) && MPI_Comm_toint(comm) != MPI_Type_toint(type));
  OK(MPI_Type_free(&type));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Win_free(&win));
  OK(MPI_Session_finalize(&session));
  OK(MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Op_free(&op));
  OK(MPI_Info_free(&info));
  OK(MPI_Group_free(&group));
  OK(MPI_Errhandler_free(&handler));
  /* Null and predefined ones. */
  BOTH_WAYS(Errhandler, MPI_ERRHANDLER_NULL);
  BOTH_WAYS(Errhandler, MPI_ERRORS_RETURN);
  BOTH_WAYS(Group, MPI_GROUP_NULL);
  BOTH_WAYS(Group, MPI_GROUP_EMPTY);
  BOTH_WAYS(Info, MPI_INFO_NULL);
  BOTH_WAYS(Info, MPI_INFO_ENV);
  BOTH_WAYS(Op, MPI_OP_NULL);
  BOTH_WAYS(Op, MPI_MAXLOC);
  BOTH_WAYS(Request, MPI_REQUEST_NULL);
  BOTH_WAYS(Message, MPI_MESSAGE_NULL);
  BOTH_WAYS(Message, MPI_MESSAGE_NO_PROC);
  BOTH_WAYS(Session, MPI_SESSION_NULL);
  BOTH_WAYS(File, MPI_FILE_NULL);
  BOTH_WAYS(Win, MPI_WIN_NULL);
  BOTH_WAYS(Comm, MPI_COMM_NULL);
  BOTH_WAYS(Comm, MPI_COMM_SELF);
  BOTH_WAYS(Type, MPI_DATATYPE_NULL);
  BOTH_WAYS(Type, MPI_C_LONG_DOUBLE_COMPLEX);
  /* An integer of no object makes a handle that is refused. */
  int n;
  FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_Type_fromint(-17), &n));
  FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_Type_fromint(4095), &n));
  FAILS(MPI_ERR_COMM, MPI_Comm_size(MPI_Comm_fromint(0x7fffffff), &n));
}

static void handlers(void) {
  MPI_Errhandler comm, win, file, session, got;
  MPI_Session instance;
  OK(MPI_Comm_create_errhandler(of_comm, &comm));
  OK(MPI_Win_create_errhandler(of_win, &win));
  OK(MPI_File_create_errhandler(of_file, &file));
  OK(MPI_Session_create_errhandler(of_session, &session));
  /* A handler of another kind is refused. */
  FAILS(MPI_ERR_ARG, MPI_Comm_set_errhandler(MPI_COMM_SELF, win));
  FAILS(MPI_ERR_ARG, MPI_Comm_set_errhandler(MPI_COMM_SELF, file));
  FAILS(MPI_ERR_ARG, MPI_File_set_errhandler(MPI_FILE_NULL, comm));
  FAILS(MPI_ERR_ARG, MPI_Win_create_errhandler(NULL, &got));
  FAILS(MPI_ERR_ARG, MPI_File_create_errhandler(NULL, &got));
  FAILS(MPI_ERR_ARG, MPI_Session_create_errhandler(NULL, &got));
  FAILS(MPI_ERR_ARG, MPI_Comm_create_errhandler(of_comm, NULL));
  FAILS(MPI_ERR_COMM, MPI_Comm_get_errhandler(MPI_COMM_NULL, &got));
  FAILS(MPI_ERR_COMM, MPI_Comm_set_errhandler(MPI_COMM_NULL, comm));
  FAILS(MPI_ERR_COMM, MPI_Comm_call_errhandler(MPI_COMM_NULL, MPI_ERR_TAG));
  FAILS(MPI_ERR_WIN, MPI_Win_get_errhandler(MPI_WIN_NULL, &got));
  FAILS(MPI_ERR_WIN, MPI_Win_set_errhandler(MPI_WIN_NULL, win));
  FAILS(MPI_ERR_WIN, MPI_Win_call_errhandler(MPI_WIN_NULL, MPI_ERR_TAG));
  /* MPI_FILE_NULL has the handler of files to come, which returns at first. */
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&got));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, file));
  calls = 0;
  OK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_NO_SPACE));
  CHECK(calls == 100 && last == MPI_ERR_NO_SPACE);
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  /* Sessions. */
  OK(MPI_Session_init(MPI_INFO_NULL, session, &instance));
  OK(MPI_Session_get_errhandler(instance, &got));
  OK(MPI_Errhandler_free(&got));
  calls = 0;
  OK(MPI_Session_call_errhandler(instance, MPI_ERR_OTHER));
  CHECK(calls == 1000 && last == MPI_ERR_OTHER);
  int n;
  char name[8];
  n = sizeof name;
  FAILS(MPI_ERR_ARG, MPI_Session_get_nth_pset(instance, MPI_INFO_NULL, -1, &n, name));
  CHECK(calls == 2000);
  FAILS(MPI_ERR_ARG, MPI_Session_set_errhandler(instance, comm));
  OK(MPI_Session_set_errhandler(instance, MPI_ERRORS_RETURN));
  OK(MPI_Session_get_errhandler(instance, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  OK(MPI_Session_finalize(&instance));
  FAILS(MPI_ERR_SESSION, MPI_Session_finalize(&instance));
  /* A handler that is freed in use works on, and handles are compared after a set. */
  MPI_Comm dup;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
  OK(MPI_Comm_set_errhandler(dup, comm));
  OK(MPI_Errhandler_free(&comm));
  CHECK(comm == MPI_ERRHANDLER_NULL);
  calls = 0;
  FAILS(MPI_ERR_TAG, MPI_Send(NULL, 0, MPI_INT, 0, -7, dup));
  CHECK(calls == 1);
  FAILS(MPI_ERR_TAG, last);
  OK(MPI_Comm_get_errhandler(dup, &got));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, got));
  OK(MPI_Errhandler_free(&got));
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &(MPI_Datatype){0}));
  CHECK(calls == 2);
  FAILS(MPI_ERR_COUNT, last);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_free(&dup));
  FAILS(MPI_ERR_ERRHANDLER, MPI_Errhandler_free(&comm));
  OK(MPI_Errhandler_free(&win));
  OK(MPI_Errhandler_free(&file));
  OK(MPI_Errhandler_free(&session));
}

/* Every class has a string, is its own class, and can have codes. */
static void classes(void) {
  char text[MPI_MAX_ERROR_STRING];
  int class, length, code;
  for (int i = MPI_SUCCESS; i <= MPI_ERR_ABI; i++) {
    OK(MPI_Error_class(i, &class));
    CHECK(class == i);
    OK(MPI_Error_string(i, text, &length));
    CHECK(length > 0 && length < MPI_MAX_ERROR_STRING && (int)strlen(text) == length);
    OK(MPI_Add_error_code(i, &code));
    OK(MPI_Error_class(code, &class));
    CHECK(class == i && code > MPI_ERR_LASTCODE);
    OK(MPI_Error_string(code, text, &length));
    CHECK(!length && !text[0]);
    OK(MPI_Remove_error_code(code));
    FAILS(MPI_ERR_ARG, MPI_Error_string(code, text, &length));
  }
  FAILS(MPI_ERR_ARG, MPI_Error_class(-1, &class));
  FAILS(MPI_ERR_ARG, MPI_Error_class(0, NULL));
  FAILS(MPI_ERR_ARG, MPI_Error_string(-1, text, &length));
  FAILS(MPI_ERR_ARG, MPI_Error_string(0, NULL, &length));
  FAILS(MPI_ERR_ARG, MPI_Add_error_code(MPI_ERR_LASTCODE + 500, &code));
  FAILS(MPI_ERR_ARG, MPI_Add_error_class(NULL));
  /* A string that is set again, and one that is too long. */
  char longest[2 * MPI_MAX_ERROR_STRING];
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = 0;
  OK(MPI_Add_error_class(&class));
  OK(MPI_Add_error_string(class, "first"));
  OK(MPI_Add_error_string(class, "second"));
  OK(MPI_Error_string(class, text, &length));
  CHECK(!strcmp(text, "second"));
  OK(MPI_Add_error_string(class, longest));
  OK(MPI_Error_string(class, text, &length));
  CHECK(length == (int)strlen(text) && length < MPI_MAX_ERROR_STRING);
  FAILS(MPI_ERR_ARG, MPI_Add_error_string(class, NULL));
  OK(MPI_Remove_error_string(class));
  OK(MPI_Remove_error_class(class));
  FAILS(MPI_ERR_ARG, MPI_Remove_error_class(class));
  FAILS(MPI_ERR_ARG, MPI_Remove_error_class(MPI_ERR_TAG));
  FAILS(MPI_ERR_ARG, MPI_Remove_error_code(MPI_ERR_TAG));
  FAILS(MPI_ERR_ARG, MPI_Remove_error_string(MPI_ERR_TAG));
}

static void infos(int argc, char **argv) {
  MPI_Info info, copy;
  char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY], longest[MPI_MAX_INFO_VAL];
  int flag, n;
  OK(MPI_Info_create_env(argc, argv, &info));
  OK(MPI_Info_get(info, "command", MPI_MAX_INFO_VAL, value, &flag));
  CHECK(flag && strstr(value, "objects"));
  OK(MPI_Info_get_nkeys(info, &n));
  CHECK(n >= 2);
  OK(MPI_Info_free(&info));
  OK(MPI_Info_create(&info));
  FAILS(MPI_ERR_ARG, MPI_Info_get_nthkey(info, 0, key));
  FAILS(MPI_ERR_ARG, MPI_Info_get_nthkey(info, -1, key));
  /* The longest key and value. */
  memset(key, 'k', sizeof key - 1);
  key[sizeof key - 1] = 0;
  memset(longest, 'v', sizeof longest - 1);
  longest[sizeof longest - 1] = 0;
  OK(MPI_Info_set(info, key, longest));
  OK(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag));
  CHECK(flag && !strcmp(value, longest));
  OK(MPI_Info_get_valuelen(info, key, &n, &flag));
  CHECK(flag && n == MPI_MAX_INFO_VAL - 1);
  /* MPI_Info_get has a length without the zero. */
  OK(MPI_Info_set(info, "short", "abcdef"));
  OK(MPI_Info_get(info, "short", 3, value, &flag));
  CHECK(flag && !strcmp(value, "abc"));
  OK(MPI_Info_get(info, "absent", 3, value, &flag));
  CHECK(!flag && !strcmp(value, "abc"));
  OK(MPI_Info_get_valuelen(info, "absent", &n, &flag));
  CHECK(!flag);
  FAILS(MPI_ERR_INFO_KEY, MPI_Info_get(info, "", 3, value, &flag));
  FAILS(MPI_ERR_ARG, MPI_Info_get(info, "short", -1, value, &flag));
  FAILS(MPI_ERR_ARG, MPI_Info_set(info, NULL, "x"));
  FAILS(MPI_ERR_ARG, MPI_Info_set(info, "x", NULL));
  OK(MPI_Info_set(info, "empty", ""));
  OK(MPI_Info_dup(info, &copy));
  OK(MPI_Info_free(&info));
  /* Keys are in the order of their setting, which a delete keeps. */
  OK(MPI_Info_get_nthkey(copy, 1, key));
  CHECK(!strcmp(key, "short"));
  OK(MPI_Info_delete(copy, "short"));
  OK(MPI_Info_get_nthkey(copy, 1, key));
  CHECK(!strcmp(key, "empty"));
  OK(MPI_Info_free(&copy));
  FAILS(MPI_ERR_INFO, MPI_Info_set(MPI_INFO_NULL, "a", "b"));
  FAILS(MPI_ERR_INFO, MPI_Info_dup(MPI_INFO_NULL, &copy));
  FAILS(MPI_ERR_INFO, MPI_Info_delete(MPI_INFO_NULL, "a"));
  FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));
  FAILS(MPI_ERR_ARG, MPI_Info_create(NULL));
  copy = MPI_INFO_ENV;
  CHECK(MPI_Info_free(&copy) != MPI_SUCCESS);

  /* Hardware, sets of processes, the ABI. */
  MPI_Session session;
  OK(MPI_Get_hw_resource_info(&info));
  OK(MPI_Info_get_nkeys(info, &n));
  CHECK(n >= 1);
  OK(MPI_Info_free(&info));
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Session_get_info(session, &info));
  OK(MPI_Info_get(info, "thread_level", MPI_MAX_INFO_VAL, value, &flag));
  CHECK(flag && strstr(value, "MPI_THREAD_") == value);
  OK(MPI_Info_free(&info));
  OK(MPI_Session_get_pset_info(session, "mpi://SELF", &info));
  OK(MPI_Info_get(info, "mpi_size", MPI_MAX_INFO_VAL, value, &flag));
  CHECK(flag && atoi(value) == 1);
  OK(MPI_Info_free(&info));
  OK(MPI_Session_get_pset_info(session, "mpi://WORLD", &info));
  OK(MPI_Info_get(info, "mpi_size", MPI_MAX_INFO_VAL, value, &flag));
  CHECK(flag && atoi(value) == size);
  OK(MPI_Info_free(&info));
  FAILS(MPI_ERR_ARG, MPI_Session_get_pset_info(session, "mpi://none", &info));
  OK(MPI_Session_finalize(&session));
  OK(MPI_Abi_get_info(&info));
  OK(MPI_Info_get(info, "mpi_aint_size", MPI_MAX_INFO_VAL, value, &flag));
  CHECK(flag && atoi(value) == sizeof(MPI_Aint));
  OK(MPI_Info_get(info, "mpi_count_size", MPI_MAX_INFO_VAL, value, &flag));
  CHECK(flag && atoi(value) == sizeof(MPI_Count));
  OK(MPI_Info_free(&info));
}

/* The truth values of Fortran, which a library for it sets once. */
static void fortran(void) {
  int yes = 1, no = 0, got_yes = -1, got_no = -1, is_set = -1;
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1];
  /* All types of Fortran have sizes, which can't be changed. */
  const char *sizes[][2] = {{"mpi_logical_size", "4"}, {"mpi_integer_size", "4"}, {"mpi_real_size", "4"},
                            {"mpi_double_precision_size", "8"}, {"mpi_real16_supported", "true"}};
  OK(MPI_Abi_get_fortran_info(&info));
  CHECK(info != MPI_INFO_NULL);
  for (int i = 0; i < 5; i++) {
    OK(MPI_Info_get(info, sizes[i][0], MPI_MAX_INFO_VAL, value, &is_set));
    CHECK(is_set && !strcmp(value, sizes[i][1]));
  }
  OK(MPI_Abi_set_fortran_info(info));
  OK(MPI_Info_free(&info));
  for (int i = 0; i < 4; i++) {
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, sizes[i][0], i == 3 ? "16" : "8"));
    FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    OK(MPI_Info_free(&info));
  }
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_real2_supported", "perhaps"));
  FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
  OK(MPI_Info_set(info, "mpi_real2_supported", "false"));
  OK(MPI_Abi_set_fortran_info(info));
  OK(MPI_Info_free(&info));
  OK(MPI_Abi_get_fortran_info(&info));
  OK(MPI_Info_get(info, "mpi_real2_supported", MPI_MAX_INFO_VAL, value, &is_set));
  CHECK(is_set && !strcmp(value, "false"));
  OK(MPI_Info_free(&info));
  OK(MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &is_set));
  CHECK(!is_set);
  OK(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no));
  OK(MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &is_set));
  CHECK(is_set && got_yes == 1 && got_no == 0);
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_logical_size", "4"));
  OK(MPI_Abi_set_fortran_info(info));
  OK(MPI_Info_free(&info));
  OK(MPI_Abi_get_fortran_info(&info));
  CHECK(info != MPI_INFO_NULL);
  OK(MPI_Info_free(&info));
}

static int deletes;

static int copy_one(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)keyval, (void)extra;
  *(void **)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete_one(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  deletes++;
  return MPI_SUCCESS;
}

/* The names of MPI-1 for attributes of communicators. */
static void deprecated(void) {
  int key, flag, value = 5, *got;
  MPI_Comm comm, dup;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Keyval_create(copy_one, delete_one, &key, NULL));
  OK(MPI_Attr_put(comm, key, &value));
  OK(MPI_Attr_get(comm, key, &got, &flag));
  CHECK(flag && got == &value);
  OK(MPI_Comm_get_attr(comm, key, &got, &flag));
  CHECK(flag && got == &value);
  OK(MPI_Comm_dup(comm, &dup));
  OK(MPI_Attr_get(dup, key, &got, &flag));
  CHECK(flag && got == &value);
  OK(MPI_Attr_delete(comm, key));
  OK(MPI_Attr_get(comm, key, &got, &flag));
  CHECK(!flag && deletes == 1);
  OK(MPI_Keyval_free(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
  OK(MPI_Comm_free(&dup));
  CHECK(deletes == 2);
  OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  integers();
  handlers();
  classes();
  infos(argc, argv);
  fortran();
  deprecated();
  OK(MPI_Pcontrol(0));
  OK(MPI_Pcontrol(2, "a tool's"));
  return end();
}
