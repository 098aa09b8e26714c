#include "stagecraft/actors/executor/nccl/nccl_connector.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/nccl/nccl_library.h"
#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/byte_tensor.h"

namespace stagecraft {
namespace {

using c10::impl::VirtualGuardImpl;

/// The edge of what ranks say when they join; no plan and no collective has it (TG-1).
constexpr EdgeId kJoinEdge{std::numeric_limits<std::int32_t>::min()};
/// Never sent: its receive ends with the epoch.
constexpr Microbatch kEndOfEpoch{1};

std::string names_of(const std::vector<Rank>& peers) {
  std::string names;
  for (const Rank peer : peers) {
    names += (names.empty() ? "" : ", ") + peer_name(peer);
  }
  return names;
}

}  // namespace

/// The lock lets any thread abort; what is added afterwards is aborted at once.
class NcclConnector::Ends {
 public:
  explicit Ends(std::shared_ptr<Nccl> nccl) : nccl_(std::move(nccl)) {}

  void add(const std::shared_ptr<Nccl::Communicator>& end) {
    const std::scoped_lock lock(mutex_);
    if (aborted_) {
      nccl_->abort({end});
    } else {
      ends_.push_back(end);
    }
  }
  void abort() noexcept {
    const std::scoped_lock lock(mutex_);
    aborted_ = true;
    if (!ends_.empty()) {
      nccl_->abort(std::exchange(ends_, {}));
    }
  }

 private:
  const std::shared_ptr<Nccl> nccl_;
  std::mutex mutex_;
  bool aborted_ = false;
  std::vector<std::shared_ptr<Nccl::Communicator>> ends_;
};

NcclConnector::NcclConnector(const c10::Device& place,
                             std::shared_ptr<Transport> transport,
                             std::shared_ptr<WaitBoard> board,
                             std::chrono::milliseconds patience)
    : place_(place),
      transport_(std::move(transport)),
      board_(std::move(board)),
      patience_(patience),
      // NCCL gives the thread back its device, which would otherwise wake up GPU 0.
      aborts_(std::make_shared<JobThread>(
          [place] { VirtualGuardImpl(place.type()).setDevice(place); })) {}

NcclConnector::~NcclConnector() {
  abort();
}

void NcclConnector::abort() noexcept {
  if (ends_) {
    ends_->abort();
  }
}

void NcclConnector::begin(const Tag& step) {
  if (epoch_ == step.epoch) {
    tag_.submission = step.submission;
    return;
  }
  if (std::shared_ptr<Nccl> found = nccl_ ? nullptr : nccl_library()) {
    own_name_ = found->name_of(place_);
    nccl_ = std::move(found);
  }
  abort();
  epoch_ = step.epoch;
  tag_ = step;
  tag_.edge = kJoinEdge;
  ends_ = std::make_shared<Ends>(nccl_);
  Tag never = tag_;
  never.microbatch = kEndOfEpoch;
  // On a thread of its own, because a callback must not block (F-4), and an abort may.
  end_of_epoch_ = transport_->receive(kDriver, never);
  end_of_epoch_.on_ready(
      [ends = ends_, aborts = aborts_] { aborts->post([ends] { ends->abort(); }); });
}

std::shared_ptr<Nccl::Communicator> NcclConnector::join(const std::vector<Rank>& ranks) {
  const auto self = std::ranges::find(ranks, transport_->self());
  std::vector<Rank> peers = ranks;
  peers.erase(peers.begin() + (self - ranks.begin()));
  const bool is_apart =
      std::ranges::none_of(peers, [&](Rank peer) { return transport_->hands_over(peer); });
  const std::string name = is_apart ? own_name_ : "";
  say(peers, name);
  std::set<std::string> names{name};
  for (const Rank peer : peers) {
    names.insert(hear(peer));
  }
  if (names.contains("") || names.size() < ranks.size()) {
    return nullptr;
  }
  Nccl::Id id{};
  if (self == ranks.begin()) {
    id = nccl_->new_id();
    say(peers, {id.data(), id.size()});
  } else {
    id = heard_id(ranks.front());
  }
  const std::shared_ptr<Nccl::Communicator> end = nccl_->join(
      id, static_cast<int>(self - ranks.begin()), static_cast<int>(ranks.size()), place_);
  ends_->add(end);
  settle(*end, peers);
  return end;
}

/// NCCL has no call that waits. A transfer takes it some 50 us, a connection longer.
void NcclConnector::settle(Nccl::Communicator& end, const std::vector<Rank>& peers) {
  constexpr std::chrono::microseconds kSoon{200}, kInterval{100};
  const auto begun = board_->clock().now();
  while (!of_epoch([&] { return end.is_settled(); })) {
    const auto now = board_->clock().now();
    if (now > begun + patience_) {
      throw Error(Errc::ClusterTimeout,
                  fmt::format("NCCL did not reach {} within {} s",
                              names_of(peers),
                              std::chrono::duration<double>(patience_).count()));
    }
    if (now < begun + kSoon) {
      std::this_thread::yield();
      continue;
    }
    std::vector<Arrival> shown;
    for (const Rank peer : peers) {
      shown.emplace_back(peer, end_of_epoch_);
    }
    (void)board_->wait(shown, now + kInterval);
  }
}

void NcclConnector::say(const std::vector<Rank>& peers, const std::string& text) {
  for (const Rank peer : peers) {
    transport_->send(peer, tag_, byte_tensor(text));
  }
}

std::string NcclConnector::hear(Rank from) {
  const Future<at::Tensor> future = transport_->receive(from, tag_);
  if (!board_->wait({{from, future}}, board_->clock().now() + patience_)) {
    throw Error(
        Errc::ClusterTimeout,
        fmt::format("{} did not connect its device within {} s; its worker is stuck or gone",
                    peer_name(from),
                    std::chrono::duration<double>(patience_).count()));
  }
  const at::Tensor bytes = future.get();
  if (bytes.scalar_type() != at::kByte || !bytes.is_contiguous()) {
    throw Error(Errc::WireFormat, fmt::format("{} connects by other than bytes", peer_name(from)));
  }
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>()),
          static_cast<std::size_t>(bytes.numel())};
}

Nccl::Id NcclConnector::heard_id(Rank from) {
  const std::string heard = hear(from);
  Nccl::Id id{};
  if (heard.size() != id.size()) {
    throw Error(Errc::WireFormat,
                fmt::format("{} names a communicator by {} bytes, expected {}",
                            peer_name(from),
                            heard.size(),
                            id.size()));
  }
  std::ranges::copy(heard, id.data());
  return id;
}

c10::Stream NcclConnector::stream() const {
  return VirtualGuardImpl(place_.type()).getStream(place_);
}

}  // namespace stagecraft
