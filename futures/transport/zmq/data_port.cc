#include "stagecraft/futures/transport/zmq/data_port.h"

#include <utility>
#include <vector>

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/transport/zmq/frames/outbox.h"
#include "stagecraft/futures/transport/zmq/port_loop.h"

namespace stagecraft {
namespace {

Error refused(const at::Tensor& tensor, Rank to, const Tag& tag, const std::string& what) {
  return Error(Errc::TransportRefused,
               fmt::format("cannot send a tensor of {} to {} as {}: {}",
                           c10::toString(tensor.scalar_type()),
                           peer_name(to),
                           to_string(tag),
                           what));
}

/// Returns the tensor as its frames hold it: plain values, one after the other.
at::Tensor plain(const at::Tensor& tensor, Rank to, const Tag& tag, std::int64_t largest) {
  if (tensor.layout() != at::kStrided || !has_frames(tensor.scalar_type())) {
    throw refused(
        tensor, to, tag, "only dense tensors that are not quantized can be sent; convert it");
  }
  if (!tensor.device().is_cpu()) {
    throw refused(tensor, to, tag, "it is on " + tensor.device().str() + "; move it to the CPU");
  }
  if (static_cast<std::size_t>(tensor.dim()) > kMostDimensions) {
    throw refused(
        tensor,
        to,
        tag,
        fmt::format(
            "it has {} dimensions, but at most {} can be sent", tensor.dim(), kMostDimensions));
  }
  const std::int64_t bytes = tensor.numel() * static_cast<std::int64_t>(tensor.itemsize());
  if (bytes > largest) {
    throw refused(
        tensor,
        to,
        tag,
        fmt::format("its {} bytes are more than {}: raise largest_tensor", bytes, largest));
  }
  const c10::AutoGradMode without_gradient(false);
  at::Tensor values = tensor.requires_grad() ? tensor.detach() : tensor;
  if (values._is_zerotensor()) {
    values = values.clone();
  }
  return values.resolve_conj().resolve_neg().contiguous();
}

/// Releases the caller's tensor before its copy waits to be sent.
Outgoing outgoing(NetworkId network,
                  Rank from,
                  Rank to,
                  const Tag& tag,
                  at::Tensor tensor,
                  std::int64_t largest) {
  at::Tensor values = plain(tensor, to, tag, largest);
  tensor.reset();
  return {.network = network,
          .from = from,
          .to = to,
          .tag = tag,
          .slot = {},
          .tensor = std::move(values)};
}

}  // namespace

std::shared_ptr<DataPort> DataPort::open(DataPortOptions options) {
  require_valid(options);
  process_end::arm();  // the threads touch tensors
  return std::shared_ptr<DataPort>(new DataPort(std::move(options)));
}

DataPort::DataPort(DataPortOptions options)
    : loop_(std::make_shared<PortLoop>(std::move(options))),
      thread_([loop = loop_] { loop->run(); }) {}

DataPort::~DataPort() {
  if (!home_.is_here() || process_end::begun()) {
    // Its threads are parked or do not exist, so a wait would never end.
    struct Kept {
      std::shared_ptr<PortLoop> loop;
      std::thread thread;
    };
    static auto* const kept = new std::vector<Kept>;
    kept->push_back({loop_, std::move(thread_)});
    return;
  }
  close();
}

const PortAddress& DataPort::address() const {
  return loop_->address();
}

void DataPort::admit(const PortAddress& peer) {
  loop_->admit(peer);
}

void DataPort::forget(const PortAddress& peer) {
  loop_->forget(peer);
}

void DataPort::send(const PortAddress& peer,
                    NetworkId network,
                    Rank from,
                    Rank to,
                    const Tag& tag,
                    at::Tensor tensor) {
  loop_->send(peer.key,
              outgoing(network, from, to, tag, std::move(tensor), loop_->options().largest_tensor));
}

void DataPort::lend(const PortAddress& peer,
                    NetworkId network,
                    Rank from,
                    Rank to,
                    const Tag& tag,
                    at::Tensor tensor) {
  Outgoing lent =
      outgoing(network, from, to, tag, std::move(tensor), loop_->options().largest_tensor);
  lent.slot = loop_->lent().range_of(lent.tensor);
  loop_->send(peer.key, std::move(lent));
}

at::Tensor DataPort::lendable(std::int64_t elements, at::ScalarType dtype) {
  return loop_->lent().zeros(elements, dtype);
}

Route DataPort::route_to(const PortAddress& peer) const {
  return loop_->route_to(peer.key);
}

void DataPort::attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes) {
  loop_->networks().attach(network, mailboxes);
}

void DataPort::detach(NetworkId network) {
  loop_->networks().detach(network);
}

void DataPort::place(NetworkId network, Rank rank, const PortAddress& peer) {
  loop_->networks().place(network, rank, peer.key);
}

void DataPort::tidy() {
  loop_->tidy();
}

PortCounts DataPort::counts() const {
  return loop_->counts();
}

void DataPort::close() {
  loop_->stop();
  std::thread ending;
  {
    const std::scoped_lock lock(closing_);
    ending = std::move(thread_);
  }
  if (!ending.joinable()) {
    return;
  }
  if (ending.get_id() == std::this_thread::get_id()) {
    ending.detach();  // a callback of a received tensor released the port; the loop ends next
  } else {
    const process_end::Elsewhere waiting;
    ending.join();
  }
}

}  // namespace stagecraft
