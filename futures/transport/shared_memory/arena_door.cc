#include "stagecraft/futures/transport/shared_memory/arena_door.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/futures/transport/shared_memory/local_socket.h"

namespace stagecraft {
namespace {

/// Returns the descriptor that came with a message.
Descriptor descriptor_in(msghdr& message) {
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return {};
  }
  int number = -1;
  std::memcpy(&number, CMSG_DATA(header), sizeof number);
  return Descriptor(number);
}

}  // namespace

ArenaDoor::ArenaDoor(const std::string& key) : listening_(local_socket::make()) {
  const auto [address, size] = local_socket::address_of(key);
  if (!listening_ ||
      bind(listening_.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listening_.number(), static_cast<int>(kMostWaiting)) != 0) {
    log(Level::Warning,
        "no shared memory with processes of this host",
        {{"why", std::strerror(errno)}});
    listening_ = Descriptor();
  }
}

std::vector<int> ArenaDoor::events() const {
  std::vector<int> numbers;
  if (listening_) {
    numbers.push_back(listening_.number());
  }
  for (const Descriptor& connection : waiting_) {
    numbers.push_back(connection.number());
  }
  return numbers;
}

void ArenaDoor::look() {
  while (listening_) {
    Descriptor connection(
        accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      break;
    }
    if (local_socket::is_of_this_user(connection)) {
      waiting_.push_back(std::move(connection));
    }
    if (waiting_.size() > kMostWaiting) {
      waiting_.pop_front();
    }
  }
  std::erase_if(waiting_, [this](const Descriptor& connection) { return take(connection); });
}

bool ArenaDoor::take(const Descriptor& connection) {
  ArenaId arena;
  // Room for one descriptor: the system closes any others.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec bytes{.iov_base = &arena, .iov_len = sizeof arena};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(connection.number(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return false;
  }
  Descriptor memory = got < 0 ? Descriptor() : descriptor_in(message);
  if (got != static_cast<ssize_t>(sizeof arena) || !memory) {
    return true;
  }
  try {
    unclaimed_.emplace_back(arena, std::make_shared<SlotView>(MemoryFile(std::move(memory))));
  } catch (const Error& error) {
    log(Level::Warning, "shared memory refused", {{"why", error.what()}});
    return true;
  }
  if (unclaimed_.size() > kMostUnclaimed) {
    unclaimed_.pop_front();
  }
  const char taken = 1;
  static_cast<void>(send(connection.number(), &taken, sizeof taken, MSG_NOSIGNAL));
  return true;
}

std::shared_ptr<SlotView> ArenaDoor::claim(ArenaId arena) {
  const auto found = std::ranges::find(unclaimed_, arena, &Unclaimed::first);
  if (found == unclaimed_.end()) {
    return nullptr;
  }
  std::shared_ptr<SlotView> view = std::move(found->second);
  unclaimed_.erase(found);
  return view;
}

}  // namespace stagecraft
