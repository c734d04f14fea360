/* The floor for any server: recvmmsg, QR set, sendmmsg, and nothing else.  usage: udp-echo PORT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SLOTS = 64, ROOM = 1500 };

static struct mmsghdr heads[SLOTS];
static struct iovec vectors[SLOTS];
static struct sockaddr_storage senders[SLOTS];
static unsigned char messages[SLOTS][ROOM];

int main(int count, char **arguments) {
  if (count != 2) return 2;
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_DGRAM, 0), octets = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &octets, sizeof octets);
  if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own) < 0) return 1;
  for (;;) {
    for (int slot = 0; slot < SLOTS; slot++) {
      vectors[slot] = (struct iovec){messages[slot], ROOM};
      heads[slot].msg_hdr = (struct msghdr){
          .msg_name = &senders[slot], .msg_namelen = sizeof senders[slot], .msg_iov = &vectors[slot], .msg_iovlen = 1};
    }
    int received = recvmmsg(fd, heads, SLOTS, MSG_WAITFORONE, NULL);
    for (int slot = 0; slot < received; slot++) {
      vectors[slot].iov_len = heads[slot].msg_len;
      messages[slot][2] |= 0x80;
    }
    for (int sent = 0; sent < received;) {
      int more = sendmmsg(fd, heads + sent, received - sent, 0);
      sent += more > 0 ? more : 1;
    }
  }
}
