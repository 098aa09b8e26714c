#include "stagecraft/tests/hosts/packet_socket.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>

namespace stagecraft::tests {
namespace {

constexpr std::size_t kLongest = 1U << 17U;
constexpr timeval kMoment{.tv_sec = 0, .tv_usec = 50'000};

}  // namespace

PacketSocket::PacketSocket(const std::string& interface)
    : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL))),
      buffer_(kLongest, '\0') {
  const int on = 1;
  sockaddr_ll here{};
  here.sll_family = AF_PACKET;
  here.sll_protocol = htons(ETH_P_ALL);
  here.sll_ifindex = static_cast<int>(interface.empty() ? 0 : if_nametoindex(interface.c_str()));
  if (socket_ < 0 || (!interface.empty() && here.sll_ifindex == 0) ||
      setsockopt(socket_, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
      setsockopt(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kMoment, sizeof kMoment) != 0 ||
      bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) {
    throw std::runtime_error("no frames of " + interface + ": " + std::strerror(errno));
  }
}

PacketSocket::~PacketSocket() {
  close(socket_);
}

std::span<char> PacketSocket::receive() {
  sockaddr_ll from{};
  socklen_t size = sizeof from;
  const auto got = recvfrom(
      socket_, buffer_.data(), buffer_.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
  last_ = from.sll_ifindex;
  return {buffer_.data(), got < 0 ? 0 : static_cast<std::size_t>(got)};
}

void PacketSocket::send(std::span<const char> frame) const {
  static_cast<void>(::send(socket_, frame.data(), frame.size(), 0));
}

std::string PacketSocket::interface() const {
  ifreq asked{};  // the socket's: this thread may be elsewhere by now
  asked.ifr_ifindex = last_;
  return ioctl(socket_, SIOCGIFNAME, &asked) == 0 ? asked.ifr_name : "";
}

}  // namespace stagecraft::tests
