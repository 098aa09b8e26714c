#include "stagecraft/compiler/data/epoch_order.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

namespace stagecraft {

std::int64_t EpochOrder::of(std::int64_t epoch, std::int64_t place) {
  if (epoch == 0 && first_ == First::AsStored) {
    return place;
  }
  if (epoch != epoch_) {
    // Each epoch has a generator of its own, rather than a part of one long stream.
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(
        seed_ * 7'919 + 17 + static_cast<std::uint64_t>(epoch));
    order_ = at::randperm(count_, generator, at::kLong);
    epoch_ = epoch;
  }
  return order_.const_data_ptr<std::int64_t>()[place];
}

}  // namespace stagecraft
