#include "stagecraft/tools/train/work/model_sizes.h"

#include <cmath>

#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft::tools {

std::int64_t ModelSizes::whole(std::string_view name) const {
  return std::llround(real(name));
}

double ModelSizes::real(std::string_view name) const {
  const auto at = values_.find(name);
  SC_CHECK(at != values_.end(), fmt::format("no model has a size '{}'", name));
  return at->second;
}

}  // namespace stagecraft::tools
