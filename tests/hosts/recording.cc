#include "stagecraft/tests/hosts/recording.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

namespace stagecraft::tests {
namespace {

constexpr std::size_t kMostKept = 1U << 13U;  // bytes of a connection
constexpr std::uint16_t kSsh = 22;

}  // namespace

Recording::Recording(const TestHosts& hosts) {
  hosts.at_bridge([this] { socket_ = std::make_unique<PacketSocket>(); });
  listener_ = std::thread([this] { listen(); });
}

Recording::~Recording() {
  over_ = true;
  listener_.join();
}

void Recording::listen() {
  while (!over_) {
    const auto frame = socket_->receive();
    // The bridge shows the same frames once more.
    if (frame.size() > PacketSocket::kNote && socket_->interface().starts_with("port")) {
      take(reinterpret_cast<const unsigned char*>(frame.data()) + PacketSocket::kNote,
           frame.size() - PacketSocket::kNote);
    }
  }
}

void Recording::take(const unsigned char* frame, std::size_t size) {
  iphdr ip{};
  tcphdr tcp{};
  std::uint16_t type = 0;
  if (size < ETH_HLEN + sizeof ip) {
    return;
  }
  std::memcpy(&type, frame + 12, sizeof type);
  std::memcpy(&ip, frame + ETH_HLEN, sizeof ip);
  const std::size_t at = ETH_HLEN + 4U * ip.ihl;
  const std::size_t end = std::min<std::size_t>(size, ETH_HLEN + ntohs(ip.tot_len));
  if (ntohs(type) != ETH_P_IP || ip.protocol != IPPROTO_TCP || end < at + sizeof tcp) {
    return;
  }
  std::memcpy(&tcp, frame + at, sizeof tcp);
  const std::size_t text = at + 4U * tcp.doff;
  if (ntohs(tcp.dest) == kSsh || end < text) {
    return;
  }
  const Connection connection{ip.saddr, tcp.source, ip.daddr, tcp.dest};
  const std::uint32_t sequence = ntohl(tcp.seq);
  const std::scoped_lock lock(mutex_);
  if (tcp.syn != 0 && tcp.ack == 0) {
    kept_[connection] = {.next = sequence + 1, .bytes = {}};
    return;
  }
  const auto found = kept_.find(connection);
  if (found == kept_.end() || found->second.next != sequence ||
      found->second.bytes.size() >= kMostKept) {
    return;
  }
  found->second.bytes.append(reinterpret_cast<const char*>(frame) + text, end - text);
  found->second.next += static_cast<std::uint32_t>(end - text);
}

std::vector<Said> Recording::said() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Said> all;
  for (const auto& [connection, kept] : kept_) {
    if (!kept.bytes.empty()) {
      std::array<char, INET_ADDRSTRLEN> text{};
      const in_addr there{std::get<2>(connection)};
      inet_ntop(AF_INET, &there, text.data(), text.size());
      all.push_back({text.data(), ntohs(std::get<3>(connection)), kept.bytes});
    }
  }
  return all;
}

}  // namespace stagecraft::tests
