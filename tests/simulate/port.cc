#include "stagecraft/tests/simulate/port.h"

#include <utility>

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

namespace stagecraft::simulation {

std::shared_ptr<Port> Port::open(Network& network,
                                 const std::shared_ptr<Ports>& all,
                                 ProcessNumber process) {
  std::string key = fmt::format("port {} of process {}", all->size(), process);
  const auto port = std::make_shared<Port>(network, all, process, key);
  (*all)[std::move(key)] = port;
  return port;
}

void Port::send(const PortAddress& peer,
                NetworkId network,
                Rank from,
                Rank to,
                const Tag& tag,
                at::Tensor tensor) {
  const auto there = (*all_)[peer.key].lock();
  if (!admitted_.contains(peer.key) || there == nullptr) {
    return;
  }
  // Read as late as a transport may (T-2). The other process gets a copy.
  network_.send(process_,
                there->process_,
                Plane::Data,
                [there, key = address_.key, network, from, to, tag, tensor = std::move(tensor)] {
                  const auto boxes = there->networks_.find(network);
                  Mailbox* const box =
                      boxes != nullptr && there->admitted_.contains(key) &&
                              there->networks_.is_at(network, from, key)  // keeps DP-9
                          ? boxes->find(to)
                          : nullptr;
                  if (box != nullptr) {
                    box->deliver(from, tag, tensor.clone());
                  }
                });
}

at::Tensor Port::lendable(std::int64_t elements, at::ScalarType dtype) {
  return at::zeros({elements}, at::TensorOptions().dtype(dtype));
}

void Port::attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes) {
  networks_.attach(network, mailboxes);
  std::erase_if(mailboxes_, [](const auto& known) { return known.expired(); });
  mailboxes_.push_back(mailboxes);
}

std::int64_t Port::bytes_waiting() const {
  std::int64_t bytes = 0;
  for (const std::weak_ptr<const Mailboxes>& weak : mailboxes_) {
    if (const auto boxes = weak.lock()) {
      for (int r = kDriver.value; r < boxes->ranks(); ++r) {
        bytes += boxes->of(Rank(r)).bytes_waiting();
      }
    }
  }
  return bytes;
}

void Port::abandon(const Error& why) const {
  for (const std::weak_ptr<const Mailboxes>& weak : mailboxes_) {
    if (const auto boxes = weak.lock()) {
      for (int r = kDriver.value; r < boxes->ranks(); ++r) {
        boxes->of(Rank(r)).close(why);
      }
    }
  }
}

}  // namespace stagecraft::simulation
