#include "stagecraft/futures/collective/pending_gather.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include <ATen/ops/cat.h>

#include "stagecraft/base/check.h"
#include "stagecraft/futures/collective/exchange.h"

namespace stagecraft::collective {

PendingGather::PendingGather(std::string name,
                             std::vector<Rank> ranks,
                             std::vector<Arrival> arrivals,
                             std::shared_ptr<Passing> passing,
                             std::shared_ptr<WaitBoard> board)
    : name_(std::move(name)),
      ranks_(std::move(ranks)),
      arrivals_(std::move(arrivals)),
      passing_(std::move(passing)),
      board_(std::move(board)) {}

at::Tensor PendingGather::wait(Deadline deadline) {
  return at::cat(arrived(deadline));
}

void PendingGather::wait_into(Deadline deadline, const at::Tensor& place) {
  const std::vector<at::Tensor> tensors = arrived(deadline);
  SC_CHECK(place.scalar_type() == tensors.front().scalar_type() &&
               place.numel() == tensors.front().numel() * std::ssize(tensors),
           name_ + " was waited for with a buffer of another size or dtype");
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor part = place.narrow(0, begin, tensor.numel());
    if (!part.is_alias_of(tensor) || part.data_ptr() != tensor.data_ptr()) {
      part.copy_(tensor);
    }
    begin += tensor.numel();
  }
}

std::vector<at::Tensor> PendingGather::arrived(Deadline deadline) {
  const std::vector<Arrival> arrivals = std::exchange(arrivals_, {});
  SC_CHECK(!arrivals.empty(), name_ + " was waited for twice");
  wait_for(*board_, name_, arrivals, deadline);
  Tensors tensors = tensors_of(arrivals);
  for (at::Tensor& tensor : tensors) {
    tensor = passing_->take_over(std::move(tensor));
  }
  check_alike(name_, ranks_, tensors);
  return tensors;
}

}  // namespace stagecraft::collective
