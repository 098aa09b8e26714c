#include "stagecraft/futures/transport/zmq/port_loop.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {
namespace {

/// kLooks: number of looks after peers per silence time. kLongestLook: the longest interval between
/// looks.
constexpr int kLooks = 10;
constexpr std::chrono::milliseconds kLongestLook{500};
constexpr std::chrono::milliseconds kForEver{-1};

}  // namespace

PortLoop::PortLoop(DataPortOptions options)
    : options_(std::move(options)),
      sockets_(options_),
      door_(options_.shared_memory > 0 ? ArenaDoor(sockets_.address().key) : ArenaDoor()),
      lent_(options_.shared_memory) {}

void PortLoop::admit(const PortAddress& peer) {
  require_valid(peer);
  if (peers_.add(peer)) {
    post(Admitted{peer.key});
  }
}

void PortLoop::forget(const PortAddress& address) {
  std::shared_ptr<Peer> peer = peers_.remove(address.key);
  if (peer == nullptr) {
    return;
  }
  const Outbox dropped = peer->sender.give_up();
  counter_.change_link(address.key,
                       [&dropped](LinkCounts& link) { link.tensors_dropped += dropped.tensors(); });
  post(Forgotten{std::move(peer)});
}

void PortLoop::send(const std::string& key, Outgoing outgoing) {
  std::shared_ptr<Peer> peer = peers_.find(key);
  if (peer == nullptr) {
    counter_.change_link(key, [](LinkCounts& link) { ++link.tensors_dropped; });
  } else if (peer->sender.send(std::move(outgoing))) {
    try {
      post(Busy{peer});  // keeps LP-1
    } catch (...) {      // a lack of memory
      peer->sender.take_back();
      throw;
    }
  }
}

Route PortLoop::route_to(const std::string& key) const {
  const std::shared_ptr<Peer> peer = peers_.find(key);
  return peer == nullptr ? Route::Unused : peer->sender.route();
}

void PortLoop::tidy() {
  post(Tidy{});
}

void PortLoop::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  asleep_ = false;
  sockets_.wake();
}

void PortLoop::post(Order order) {
  const std::scoped_lock lock(mutex_);
  if (stopped_) {
    return;
  }
  orders_.push_back(std::move(order));
  if (std::exchange(asleep_, false)) {
    sockets_.wake();
  }
}

void PortLoop::run() noexcept {
  try {
    turns();
  } catch (const std::exception& error) {
    log(Level::Error,
        "data port failed",
        {{"endpoint", address().endpoint}, {"why", error.what()}});
    if (options_.when_failed) {
      options_.when_failed(
          Error(Errc::TransportClosed,
                fmt::format("the data port {} failed: {}", address().endpoint, error.what())));
    }
  }
  end();
}

void PortLoop::end() {
  const process_end::AtWork at_work;
  std::vector<Order> left;
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    left.swap(orders_);
  }
  for (const auto& peer : peers_.close()) {
    static_cast<void>(peer->sender.give_up());  // a send in progress finishes first
  }
  busy_.clear();
  left.clear();
  receiver_.close();
  const process_end::Elsewhere waiting;
  sockets_.close();
}

void PortLoop::turns() {
  bool more = false;
  while (true) {
    wait(more);
    const process_end::AtWork at_work;
    if (!carry_out_orders()) {
      return;
    }
    look_after_peers();
    end_strangers();
    if (offered_) {
      door_.look();
    }
    judge_.judge();
    more = receiver_.take_messages();
    more = send_chunks() || more;
  }
}

void PortLoop::wait(bool more) {
  {
    const std::scoped_lock lock(mutex_);
    more = more || stopped_ || !orders_.empty();
    asleep_ = !more;
  }
  more = more || !receiver_.fall_asleep();
  const std::chrono::milliseconds longest =
      options_.silence.count() == 0 ? kForEver : look_interval();
  full_.clear();
  for (const auto& peer : busy_) {
    if (zmq::socket_t* const socket = peer->sender.full_socket()) {
      full_.push_back({socket});
    }
  }
  readable_.clear();
  for (const int descriptor : door_.events()) {
    readable_.push_back({descriptor});
  }
  receiver_.list_bells(readable_);
  sockets_.wait(full_, readable_, more ? std::chrono::milliseconds(0) : longest);
  const std::size_t of_door = door_.events().size();
  offered_ =
      std::ranges::any_of(std::span(readable_).first(of_door), &PortSockets::Readable::is_ready);
  receiver_.wake_up(std::span(readable_).subspan(of_door));
  auto waited = full_.begin();
  for (const auto& peer : busy_) {
    if (peer->sender.full_socket() != nullptr && (waited++)->is_ready) {
      peer->sender.set_ready();
    }
  }
}

bool PortLoop::carry_out_orders() {
  std::vector<Order> orders;
  {
    const std::scoped_lock lock(mutex_);
    asleep_ = false;
    if (stopped_) {
      return false;
    }
    orders.swap(orders_);
  }
  for (const Order& order : orders) {
    std::visit([this](const auto& one) { carry_out(one); }, order);
  }
  return true;
}

void PortLoop::carry_out(const Admitted& order) {
  judge_.admit(order.key);
}

void PortLoop::carry_out(const Forgotten& order) {
  receiver_.forget(*order.peer);
  std::erase(busy_, order.peer);
}

void PortLoop::carry_out(const Busy& order) {
  busy_.push_back(order.peer);
}

void PortLoop::carry_out(const Tidy& /*order*/) {
  receiver_.tidy();
}

std::chrono::milliseconds PortLoop::look_interval() const {
  return std::min(options_.silence / kLooks, kLongestLook);
}

/// Keeps DP-6.
void PortLoop::look_after_peers() {
  const auto now = std::chrono::steady_clock::now();
  if (options_.silence.count() == 0 || now < look_at_) {
    return;
  }
  look_at_ = now + look_interval();
  lent_.trim(now);
  for (const auto& peer : peers_.all()) {
    const std::optional<std::string> why = peer->sender.look(now);
    if (why && options_.when_cut) {
      options_.when_cut(peer->address.key,
                        Error(Errc::TransportClosed,
                              fmt::format("no data reaches {}: {}", peer->address.endpoint, *why)));
    }
  }
}

/// Keeps DP-7.
void PortLoop::end_strangers() {
  const int ended = sockets_.strangers().look();
  if (ended == 0) {
    return;
  }
  const std::int64_t before = counter_.change([ended](PortCounts& counts) {
    return std::exchange(counts.strangers_ended, counts.strangers_ended + ended);
  });
  if (before == 0) {
    log(Level::Warning,
        "many connections without a handshake: the oldest are ended",
        {{"endpoint", address().endpoint}, {"most", kMostStrangers}});
  }
}

bool PortLoop::send_chunks() {
  bool more = false;
  for (std::size_t i = 0; i < busy_.size();) {
    PeerSender& sender = busy_[i]->sender;
    if (sender.send_waiting()) {
      std::swap(busy_[i], busy_.back());
      busy_.pop_back();
    } else {
      more = more || sender.full_socket() == nullptr;
      ++i;
    }
  }
  return more;
}

}  // namespace stagecraft
