#include "stagecraft/compiler/module/tensors_of.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

TensorReader::TensorReader(std::vector<at::Tensor> tensors, std::vector<std::string> names)
    : tensors_(std::move(tensors)), names_(std::move(names)) {}

at::Tensor TensorReader::next() {
  if (done()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the module's forward takes more tensors than the {} of the batch: "
                            "pass one for each tensor in its parameters, in order",
                            tensors_.size()));
  }
  return tensors_[next_++];
}

std::string TensorReader::next_name() const {
  if (next_ >= names_.size() || names_[next_].empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the module's forward takes a map, and input {} has no name: name the "
                            "tensors of the map, sc::named(\"mask\", mask)",
                            next_));
  }
  return names_[next_];
}

void TensorReader::require_done() const {
  if (!done()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the module's forward takes {}, the batch has {}: pass one for "
                            "each tensor in its parameters, in order",
                            count_text(next_, "tensor"),
                            tensors_.size()));
  }
}

}  // namespace stagecraft
