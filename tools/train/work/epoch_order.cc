#include "stagecraft/tools/train/work/epoch_order.h"

#include <ATen/ops/randperm.h>

#include "stagecraft/tools/images/example_draw.h"

namespace stagecraft::tools {

std::int64_t EpochOrder::of(std::int64_t number) {
  const std::int64_t epoch = number / batches_;
  const std::int64_t place = number % batches_;
  if (epoch == 0) {
    return place;
  }
  if (epoch != epoch_) {
    order_ = at::randperm(batches_, generator_of(seed_, epoch, Drawn::Examples), at::kLong);
    epoch_ = epoch;
  }
  return order_.const_data_ptr<std::int64_t>()[place];
}

}  // namespace stagecraft::tools
