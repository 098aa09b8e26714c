#include "stagecraft/actors/remote/wire/payload.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/zmq/frames/frame.h"

namespace stagecraft::wire {

void PayloadWriter::leaf(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    nil();
    return;
  }
  if (!has_frames(tensor.scalar_type()) || tensor.dim() > static_cast<int>(kMostDimensions)) {
    throw Error(Errc::UsageArgument,
                fmt::format("a tensor of type {} with {} dimensions cannot go to another rank: "
                            "make it a plain one with at most {}",
                            c10::toString(tensor.scalar_type()),
                            tensor.dim(),
                            kMostDimensions));
  }
  natural(tensors_.size());
  tensors_.push_back(tensor.detach().cpu().contiguous());
}

void PayloadReader::leaf(at::Tensor& tensor) {
  if (take_nil()) {
    return;
  }
  const std::uint64_t position = natural();
  if (position != next_ || position >= tensors_.size()) {
    refuse("tensor " + std::to_string(position) + " of " + std::to_string(tensors_.size()) +
           " is not the next one");
  }
  tensor = tensors_[next_++];
}

void PayloadReader::end() const {
  Reader::end();
  if (next_ != tensors_.size()) {
    refuse(std::to_string(tensors_.size() - next_) + " tensors belong to no value");
  }
}

}  // namespace stagecraft::wire
