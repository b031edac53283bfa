/* The yardstick: what a plain C program does. Sends 1206-byte datagrams (flow, number, deadline first) at absolute deadlines.
   usage: paced_sender PORT COUNT PERIOD_NS FIFO_PRIORITY(0: none) */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

static int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    long count = atol(argv[2]);
    int64_t period_ns = atoll(argv[3]);
    struct sched_param priority = {.sched_priority = atoi(argv[4])};
    if (priority.sched_priority > 0 && sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        perror("SCHED_FIFO");
        return 1;
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
    mlockall(MCL_CURRENT);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
    static char payload[1206];
    long sent = 0;
    int64_t start_ns = now_ns(CLOCK_MONOTONIC) + 200000000LL;
    for (int64_t number = 0; number < count; number++) {
        int64_t header[3] = {0, number, start_ns + number * period_ns};
        struct timespec wake = {header[2] / 1000000000LL, header[2] % 1000000000LL};
        memcpy(payload, header, sizeof header);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) != 0) {}
        sent += sendto(descriptor, payload, sizeof payload, 0, (struct sockaddr *)&to, sizeof to) == sizeof payload;
    }
    printf("{\"planned\": %ld, \"sent\": %ld, \"cpu_s\": %.6f, \"scheduling\": \"%s\"}\n", count, sent,
           now_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9, priority.sched_priority > 0 ? "fifo" : "plain");
    return 0;
}
