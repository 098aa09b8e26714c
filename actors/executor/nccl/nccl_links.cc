#include "stagecraft/actors/executor/nccl/nccl_links.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/nccl/nccl_library.h"
#include "stagecraft/actors/executor/nccl/ticket.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using c10::impl::VirtualGuardImpl;

/// The edge of what ranks say when they connect; no plan and no collective has it (TG-1).
constexpr EdgeId kLinkEdge{std::numeric_limits<std::int32_t>::min()};
/// Never sent: its receive ends with the epoch.
constexpr Microbatch kEndOfEpoch{1};

at::Tensor bytes_of(std::string_view text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::ranges::copy(text, reinterpret_cast<char*>(bytes.mutable_data_ptr<std::uint8_t>()));
  return bytes;
}

/// Returns the tensor with each of its numbers in memory, once: NCCL moves bytes.
at::Tensor plain(const at::Tensor& tensor) {
  const at::Tensor values =
      (tensor._is_zerotensor() ? tensor.clone() : tensor).resolve_conj().resolve_neg();
  return values.is_non_overlapping_and_dense() ? values : values.contiguous();
}

}  // namespace

/// NL-4: any thread may abort; what is added afterwards is aborted at once.
class NcclLinks::Ends {
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

/// Runs a call of NCCL, which fails in an epoch that is over for no reason of its own.
template <class Call>
auto NcclLinks::of_epoch(Call&& call) const {
  try {
    return call();
  } catch (...) {
    transport_->require_current(tag_.plan, *epoch_);
    throw;
  }
}

NcclLinks::NcclLinks(const c10::Device& place,
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

NcclLinks::~NcclLinks() {
  abort();
}

void NcclLinks::abort() noexcept {
  if (ends_) {
    ends_->abort();
  }
}

bool NcclLinks::sends_to(Rank peer) const {
  const auto found = links_.find({transport_->self(), peer});
  return found != links_.end() && found->second.end != nullptr;
}

bool NcclLinks::receives_from(Rank peer) const {
  const auto found = links_.find({peer, transport_->self()});
  return found != links_.end() && found->second.end != nullptr;
}

void NcclLinks::connect(const Tag& step, const std::vector<RankPair>& pairs) {
  if (pairs.empty()) {
    return;  // no need to look for NCCL
  }
  if (epoch_ != step.epoch) {
    begin_epoch(step);
  }
  tag_.submission = step.submission;
  for (const RankPair& pair : pairs) {  // keeps NL-5
    if (!links_.contains(pair)) {
      links_.emplace(pair, connected(pair));
    }
  }
}

void NcclLinks::begin_epoch(const Tag& step) {
  if (!nccl_ && (nccl_ = nccl_library())) {
    own_name_ = nccl_->name_of(place_);
  }
  abort();
  links_.clear();
  epoch_ = step.epoch;
  tag_ = step;
  tag_.edge = kLinkEdge;
  ends_ = std::make_shared<Ends>(nccl_);
  Tag never = tag_;
  never.microbatch = kEndOfEpoch;
  // On a thread of its own, because a callback must not block (F-4), and an abort may.
  end_of_epoch_ = transport_->receive(kDriver, never);
  end_of_epoch_.on_ready(
      [ends = ends_, aborts = aborts_] { aborts->post([ends] { ends->abort(); }); });
}

NcclLinks::Link NcclLinks::connected(const RankPair& pair) {
  const bool sends = pair.first == transport_->self();
  const Rank peer = sends ? pair.second : pair.first;
  say(peer, own_name_);
  const std::string peers_name = hear(peer);
  if (own_name_.empty() || peers_name.empty() || own_name_ == peers_name) {
    return {};
  }
  Nccl::Id id{};
  if (sends) {
    id = nccl_->new_id();
    say(peer, {id.data(), id.size()});
  } else {
    const std::string heard = hear(peer);
    if (heard.size() != id.size()) {
      throw Error(Errc::WireFormat,
                  fmt::format("{} names a communicator by {} bytes, expected {}",
                              peer_name(peer),
                              heard.size(),
                              id.size()));
    }
    std::ranges::copy(heard, id.data());
  }
  const std::shared_ptr<Nccl::Communicator> end =
      nccl_->join(id, sends ? Nccl::End::Sends : Nccl::End::Receives, place_);
  ends_->add(end);
  settle(*end, peer);
  const at::Tensor byte = at::zeros({1}, at::TensorOptions(place_).dtype(at::kByte));
  of_epoch([&] {
    if (sends) {
      end->send(byte.const_data_ptr(), 1, stream());
    } else {
      end->receive(byte.mutable_data_ptr(), 1, stream());
    }
  });
  settle(*end, peer);
  return {.end = end};
}

/// NCCL has no call that waits. A transfer takes it some 50 us, a connection longer.
void NcclLinks::settle(Nccl::Communicator& end, Rank peer) {
  constexpr std::chrono::microseconds kSoon{200}, kInterval{100};
  const auto begun = std::chrono::steady_clock::now();
  while (!of_epoch([&] { return end.is_settled(); })) {
    const auto now = std::chrono::steady_clock::now();
    if (now > begun + patience_) {
      throw Error(Errc::ClusterTimeout,
                  fmt::format("NCCL did not connect to {} within {} s",
                              peer_name(peer),
                              std::chrono::duration<double>(patience_).count()));
    }
    if (now < begun + kSoon) {
      std::this_thread::yield();
    } else {
      (void)board_->wait({{peer, end_of_epoch_}}, now + kInterval);  // shows the peer
    }
  }
}

void NcclLinks::say(Rank to, const std::string& text) {
  transport_->send(to, tag_, bytes_of(text));
}

std::string NcclLinks::hear(Rank from) {
  const Future<at::Tensor> future = transport_->receive(from, tag_);
  if (!board_->wait({{from, future}}, std::chrono::steady_clock::now() + patience_)) {
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

c10::Stream NcclLinks::stream() const {
  return VirtualGuardImpl(place_.type()).getStream(place_);
}

at::Tensor NcclLinks::send(Rank to, const at::Tensor& tensor) {
  Link& link = links_.at({transport_->self(), to});
  const at::Tensor dense = plain(tensor);  // maybe a copy, made on this stream
  if (dense.nbytes() > 0) {
    of_epoch([&] { link.end->send(dense.const_data_ptr(), dense.nbytes(), stream()); });
    settle(*link.end, to);
  }
  return to_ticket(dense, link.given++);
}

at::Tensor NcclLinks::receive(Rank from, const at::Tensor& ticket) {
  Link& link = links_.at({from, transport_->self()});
  const Ticket told = read_ticket(ticket, from);
  if (told.number != link.given) {
    throw Error(Errc::PlanInvalid,
                fmt::format("{} sends this as its transfer {} to {}, which receives it as its "
                            "transfer {}: on devices, tensors between two ranks are received in "
                            "the order in which they are sent",
                            peer_name(from),
                            told.number,
                            peer_name(transport_->self()),
                            link.given));
  }
  ++link.given;
  at::Tensor tensor =
      at::empty_strided(told.sizes, told.strides, at::TensorOptions(place_).dtype(told.dtype));
  if (tensor.nbytes() > 0) {
    of_epoch([&] { link.end->receive(tensor.mutable_data_ptr(), tensor.nbytes(), stream()); });
    settle(*link.end, from);
  }
  return tensor;
}

}  // namespace stagecraft
