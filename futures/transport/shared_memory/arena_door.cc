#include "stagecraft/futures/transport/shared_memory/arena_door.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/futures/transport/shared_memory/local_socket.h"

namespace stagecraft {
namespace {

Descriptor any_file() {
  return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/// Returns the descriptors that came with a message; none if it was cut.
std::vector<Descriptor> descriptors_in(msghdr& message) {
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  std::vector<Descriptor> descriptors;
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return descriptors;
  }
  const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < count; ++i) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
    descriptors.emplace_back(number);
  }
  if ((message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
    descriptors.clear();
  }
  return descriptors;
}

}  // namespace

ArenaDoor::ArenaDoor(const std::string& key)
    : listening_(local_socket::make()), spare_(any_file()) {
  const auto [address, size] = local_socket::address_of(key);
  if (!listening_ ||
      bind(listening_.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listening_.number(), static_cast<int>(kMostSilent)) != 0) {
    log(Level::Warning,
        "no shared memory with processes of this host",
        {{"why", std::strerror(errno)}});
    listening_ = Descriptor();
  }
  list_events();
}

void ArenaDoor::look(std::chrono::steady_clock::time_point now) {
  accept_some();
  drop_ended(now);
  for (std::size_t i = 0; i < silent_.size();) {
    const bool is_over = !hear(silent_[i]);
    const bool is_taken = !is_over && silent_[i].view != nullptr;
    if (is_taken && unclaimed_.size() < kMostUnclaimed && answer(silent_[i])) {
      unclaimed_.push_back(std::move(silent_[i]));
    }
    if (is_over || is_taken) {
      silent_.erase(silent_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  while (silent_.size() > kMostSilent) {  // keeps AD-1
    silent_.pop_front();
  }
  list_events();
}

/// Says that the arena is taken. Returns false if that cannot be sent.
bool ArenaDoor::answer(const Offer& offer) {
  const char taken = 1;
  return send(offer.connection.number(), &taken, sizeof taken, MSG_NOSIGNAL) == sizeof taken;
}

/// Keeps AD-2.
void ArenaDoor::drop_ended(std::chrono::steady_clock::time_point now) {
  std::size_t ended = 0;
  for (auto offer = unclaimed_.rbegin(); offer != unclaimed_.rend(); ++offer) {
    if (offer->connection && !hear(*offer)) {
      offer->connection = Descriptor();
      offer->ended = now;
    }
    if (offer->connection) {
      continue;
    }
    if (++ended > kMostEnded || now - offer->ended > kEnded) {
      offer->view.reset();
    }
  }
  std::erase_if(unclaimed_, [](const Offer& offer) { return offer.view == nullptr; });
}

void ArenaDoor::accept_some() {
  for (std::size_t i = 0; listening_ && i < kMostSilent; ++i) {
    Descriptor connection(
        accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection && (errno == EMFILE || errno == ENFILE)) {
      // Refuse it: it would stay in the queue, and wake the thread again at once.
      spare_ = Descriptor();
      if (!Descriptor(accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC))) {
        log(Level::Warning,
            "no more shared memory with processes of this host",
            {{"why", "too many files are open"}});
        listening_ = Descriptor();
      }
      spare_ = any_file();
      return;
    }
    if (!connection) {
      return;
    }
    if (local_socket::is_of_this_user(connection)) {
      silent_.push_back(
          {.connection = std::move(connection), .arena = {}, .view = nullptr, .ended = {}});
    }
  }
}

bool ArenaDoor::hear(Offer& offer) const {
  ArenaId arena;
  // Without padding, since the system would install a further descriptor there.
  alignas(cmsghdr) std::array<char, CMSG_LEN(local_socket::kMostDescriptors * sizeof(int))>
      control{};
  iovec bytes{.iov_base = &arena, .iov_len = sizeof arena};
  msghdr message = local_socket::message_of(bytes, control);
  const ssize_t got = recvmsg(offer.connection.number(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return true;
  }
  std::vector<Descriptor> files = got < 0 ? std::vector<Descriptor>() : descriptors_in(message);
  if (got != static_cast<ssize_t>(sizeof arena) || files.empty() || offer.view != nullptr) {
    return false;
  }
  try {
    offer.arena = arena;
    MemoryFile slots(std::move(files.front()));
    offer.view = std::make_shared<SlotView>(
        std::move(slots),
        files.size() == 1 ? std::nullopt : std::optional<MemoryFile>(std::move(files.back())));
  } catch (const Error& error) {
    log(Level::Warning, "shared memory refused", {{"why", error.what()}});
    return false;
  }
  return true;
}

void ArenaDoor::list_events() {
  events_.clear();
  if (listening_) {
    events_.push_back(listening_.number());
  }
  for (const std::deque<Offer>* offers : {&silent_, &unclaimed_}) {
    for (const Offer& offer : *offers) {
      if (offer.connection) {
        events_.push_back(offer.connection.number());
      }
    }
  }
}

ArenaDoor::Claimed ArenaDoor::claim(ArenaId arena) {
  const auto found = std::ranges::find(unclaimed_, arena, &Offer::arena);
  if (found == unclaimed_.end()) {
    return {};
  }
  Claimed claimed{.view = std::move(found->view), .connection = std::move(found->connection)};
  unclaimed_.erase(found);
  list_events();
  return claimed;
}

}  // namespace stagecraft
