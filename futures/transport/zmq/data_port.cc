#include "stagecraft/futures/transport/zmq/data_port.h"

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "stagecraft/base/process/home_process.h"
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

/// SocketPort is the port of a real process.
class SocketPort final : public DataPort {
 public:
  explicit SocketPort(DataPortOptions options)
      : loop_(std::make_shared<PortLoop>(std::move(options))),
        thread_([loop = loop_] { loop->run(); }) {}
  SocketPort(const SocketPort&) = delete;
  SocketPort& operator=(const SocketPort&) = delete;
  ~SocketPort() override;

  [[nodiscard]] const PortAddress& address() const override { return loop_->address(); }
  void admit(const PortAddress& peer) override { loop_->admit(peer); }
  void forget(const PortAddress& peer) override { loop_->forget(peer); }
  void send(const PortAddress& peer,
            NetworkId network,
            Rank from,
            Rank to,
            const Tag& tag,
            at::Tensor tensor) override;
  void lend(const PortAddress& peer,
            NetworkId network,
            Rank from,
            Rank to,
            const Tag& tag,
            at::Tensor tensor) override;
  [[nodiscard]] at::Tensor lendable(std::int64_t elements, at::ScalarType dtype) override {
    return loop_->lent().zeros(elements, dtype);
  }
  [[nodiscard]] Route route_to(const PortAddress& peer) const override {
    return loop_->route_to(peer.key);
  }
  void attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes) override {
    loop_->networks().attach(network, mailboxes);
  }
  void detach(NetworkId network) override { loop_->networks().detach(network); }
  void place(NetworkId network, Rank rank, const PortAddress& peer) override {
    loop_->networks().place(network, rank, peer.key);
  }
  void tidy() override { loop_->tidy(); }
  [[nodiscard]] PortCounts counts() const override { return loop_->counts(); }
  void close() override;

 private:
  HomeProcess home_;
  std::shared_ptr<PortLoop> loop_;
  std::mutex closing_;  ///< guards thread_, because any thread may close
  std::thread thread_;
};

SocketPort::~SocketPort() {
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

void SocketPort::send(const PortAddress& peer,
                      NetworkId network,
                      Rank from,
                      Rank to,
                      const Tag& tag,
                      at::Tensor tensor) {
  loop_->send(peer.key,
              outgoing(network, from, to, tag, std::move(tensor), loop_->options().largest_tensor));
}

void SocketPort::lend(const PortAddress& peer,
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

void SocketPort::close() {
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

}  // namespace

std::shared_ptr<DataPort> DataPort::open(DataPortOptions options) {
  require_valid(options);
  process_end::arm();  // the threads touch tensors
  return std::make_shared<SocketPort>(std::move(options));
}

}  // namespace stagecraft
