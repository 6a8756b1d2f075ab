/* Dynamic processes (MPI-5.0 chapter 11): spawn, ports and names. Started with the word `child`,
   the program plays the part of a process that it has started. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <unistd.h>

/* What both sides of an intercommunicator do: a broadcast from each side, a sum, and a put after
   the merge. */
static void talk(MPI_Comm both, int is_parent)
{
    int here, there, rank, value, sum;
    OK(MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN));
    OK(MPI_Comm_size(both, &here));
    OK(MPI_Comm_remote_size(both, &there));
    OK(MPI_Comm_rank(both, &rank));
    value = is_parent ? 7 : 0;
    int root = !is_parent ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    OK(MPI_Bcast(&value, 1, MPI_INT, root, both));
    CHECK(value == 7);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both));
    CHECK(sum == there * (there - 1) / 2);
    if (rank < there && rank < here) {
        MPI_Status status;
        long sent[2000], got[2000];
        for (int i = 0; i < 2000; i++)
            sent[i] = rank + i;
        OK(MPI_Sendrecv(sent, 2000, MPI_LONG, rank, 1, got, 2000, MPI_LONG, rank, 1, both, &status));
        int n = -1;
        OK(MPI_Get_count(&status, MPI_LONG, &n));
        CHECK(n == 2000 && status.MPI_SOURCE == rank);
        CHECK(got[1999] == rank + 1999);
    }
    MPI_Comm all;
    OK(MPI_Intercomm_merge(both, !is_parent, &all));
    OK(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
    int mine, n, *memory;
    OK(MPI_Comm_rank(all, &mine));
    OK(MPI_Comm_size(all, &n));
    CHECK(n == here + there && mine == (is_parent ? rank : there + rank));
    MPI_Win win;
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, all, &memory, &win));
    *memory = -1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&mine, 1, MPI_INT, (mine + 1) % n, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(*memory == (mine + n - 1) % n);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&all));
}

static int child(int argc, char **argv)
{
    MPI_Comm parent, again;
    int *number, flag;
    CHECK(argc == 4 && strcmp(argv[2], "two words") == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag));
    CHECK(flag && *number == atoi(argv[3]));
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent != MPI_COMM_NULL);
    /* A program may take it for full where the universe has no more processes than its world. */
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &number, &flag));
    CHECK(flag && *number > size);
    talk(parent, 0);
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == parent);
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    return end();
}

static void spawn(char *self)
{
    MPI_Comm both = MPI_COMM_NULL;
    char *words[] = {"child", "two words", "0", NULL};
    int codes[3] = {-1, -1, -1}, n;
    /* Only the root's arguments count. */
    if (me == size - 1)
        OK(MPI_Comm_spawn(self, words, 2, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &both, codes));
    else
        OK(MPI_Comm_spawn(NULL, NULL, -5, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &both, codes));
    CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == -1);
    OK(MPI_Comm_remote_size(both, &n));
    CHECK(n == 2);
    talk(both, 1);
    OK(MPI_Comm_disconnect(&both));
    CHECK(both == MPI_COMM_NULL);

    char *commands[] = {self, self}, *second[] = {"child", "two words", "1", NULL};
    char **all[] = {words, second};
    int numbers[] = {1, 2};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Comm_spawn_multiple(2, commands, all, numbers, infos, 0, MPI_COMM_WORLD, &both, codes));
    OK(MPI_Comm_remote_size(both, &n));
    CHECK(n == 3);
    talk(both, 1);
    OK(MPI_Comm_disconnect(&both));
}

/* Calls that can't be meant start nothing, and fail at all ranks. */
static void refused(char *self)
{
    MPI_Comm both;
    MPI_Info info;
    int codes[2] = {-1, -1}, codes_many[3];
    char *words[] = {"child", NULL};
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/no/such/program", words, 2, MPI_INFO_NULL, 0,
                                        MPI_COMM_WORLD, &both, codes));
    CHECK(both == MPI_COMM_NULL);
    if (me == 0)
        CHECK(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/etc/passwd", words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                        &both, MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_Comm_spawn(self, words, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both,
                                      MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn(self, words, 1000000, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                        &both, MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_ROOT, MPI_Comm_spawn(self, words, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &both,
                                       MPI_ERRCODES_IGNORE));
    /* The first program exists, the second doesn't: neither is started. */
    char *commands[] = {self, "/no/such/program"}, **all[] = {words, words};
    int numbers[] = {1, 2};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn_multiple(2, commands, all, numbers, infos, 0,
                                                 MPI_COMM_WORLD, &both, codes_many));
    if (me == 0)
        CHECK(codes_many[0] == MPI_ERR_SPAWN && codes_many[2] == MPI_ERR_SPAWN);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "host", "no.such.host"));
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn(self, words, 1, info, 0, MPI_COMM_WORLD, &both,
                                        MPI_ERRCODES_IGNORE));
    OK(MPI_Info_delete(info, "host"));
    OK(MPI_Info_set(info, "wdir", "/no/such/folder"));
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn(self, words, 1, info, 0, MPI_COMM_WORLD, &both,
                                        MPI_ERRCODES_IGNORE));
    OK(MPI_Info_delete(info, "wdir"));
    OK(MPI_Info_set(info, "soft", "1:x"));
    FAILS(MPI_ERR_INFO_VALUE, MPI_Comm_spawn(self, words, 1, info, 0, MPI_COMM_WORLD, &both,
                                             MPI_ERRCODES_IGNORE));
    OK(MPI_Info_free(&info));
}

/* Soft numbers, a path and a working directory. */
static void hints(char *self)
{
    MPI_Comm both;
    MPI_Info info;
    char *words[] = {"child", "two words", "0", NULL}, *name = strrchr(self, '/');
    int codes[4], n;
    CHECK(name);
    *name = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "path", self));
    OK(MPI_Info_set(info, "wdir", "/"));
    OK(MPI_Info_set(info, "host", "localhost"));
    OK(MPI_Info_set(info, "soft", "1:3:2"));
    OK(MPI_Info_set(info, "unknown", "ignored"));
    OK(MPI_Comm_spawn(name + 1, words, 4, info, 0, MPI_COMM_WORLD, &both, codes));
    *name = '/';
    OK(MPI_Comm_remote_size(both, &n));
    CHECK(n == 3);
    if (me == 0)
        CHECK(codes[2] == MPI_SUCCESS && codes[3] == MPI_ERR_SPAWN);
    talk(both, 1);
    OK(MPI_Comm_disconnect(&both));
    OK(MPI_Info_free(&info));
}

/* The first rank accepts, the others connect. */
static void ports(void)
{
    MPI_Comm part, both;
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    int is_first = me == 0, n;
    MPI_Info info;
    if (is_first) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name("joining", MPI_INFO_NULL, port));
        FAILS(MPI_ERR_SERVICE, MPI_Publish_name("joining", MPI_INFO_NULL, port));
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "timeout", "0.1"));
        FAILS(MPI_ERR_PORT, MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &both));
        OK(MPI_Info_free(&info));
    }
    FAILS(MPI_ERR_PORT, MPI_Comm_connect("nowhere", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both));
    FAILS(MPI_ERR_PORT, MPI_Comm_accept("nowhere", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both));
    FAILS(MPI_ERR_NAME, MPI_Lookup_name("unknown", MPI_INFO_NULL, found));
    /* Any text can be published, such as another library's port. */
    if (is_first) {
        OK(MPI_Publish_name("text", MPI_INFO_NULL, "otherhost:122"));
        OK(MPI_Lookup_name("text", MPI_INFO_NULL, found));
        CHECK(strcmp(found, "otherhost:122") == 0);
        FAILS(MPI_ERR_PORT, MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both));
        OK(MPI_Unpublish_name("text", MPI_INFO_NULL, "otherhost:122"));
        memset(found, 'x', sizeof found - 1);
        found[sizeof found - 1] = 0;
        FAILS(MPI_ERR_PORT, MPI_Publish_name("text", MPI_INFO_NULL, found));
        found[512] = 0;
        OK(MPI_Publish_name("text", MPI_INFO_NULL, found));
        OK(MPI_Unpublish_name("text", MPI_INFO_NULL, found));
    }
    OK(MPI_Lookup_name("joining", MPI_INFO_NULL, found));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_split(MPI_COMM_WORLD, is_first, me, &part));
    OK(MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN));
    if (size > 1) {
        for (int round = 0; round < 2; round++) {
            if (is_first)
                OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, part, &both));
            else
                OK(MPI_Comm_connect(found, MPI_INFO_NULL, 0, part, &both));
            OK(MPI_Comm_remote_size(both, &n));
            CHECK(n == (is_first ? size - 1 : 1));
            talk(both, is_first);
            OK(MPI_Comm_disconnect(&both));
        }
        /* Nobody accepts. */
        if (!is_first) {
            OK(MPI_Info_create(&info));
            OK(MPI_Info_set(info, "timeout", "0.1"));
            FAILS(MPI_ERR_PORT, MPI_Comm_connect(found, info, 0, part, &both));
            OK(MPI_Info_free(&info));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (is_first) {
        OK(MPI_Unpublish_name("joining", MPI_INFO_NULL, port));
        FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name("joining", MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
        FAILS(MPI_ERR_PORT, MPI_Close_port(port));
        FAILS(MPI_ERR_PORT, MPI_Comm_accept(port, MPI_INFO_NULL, 0, part, &both));
    }
    OK(MPI_Comm_free(&part));
}

static void attributes(void)
{
    int *number, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &number, &flag));
    CHECK(flag && *number >= size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag));
    CHECK(flag && *number == 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (argc > 1)
        return child(argc, argv);
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length] = 0;
    MPI_Comm parent, both;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    FAILS(MPI_ERR_ARG, MPI_Comm_join(-1, &both));
    attributes();
    ports();
    spawn(self);
    hints(self);
    refused(self);
    return end();
}
