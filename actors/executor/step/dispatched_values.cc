#include "stagecraft/actors/executor/step/dispatched_values.h"

#include <algorithm>
#include <cstddef>

#include <ATen/ops/empty.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr double kMostSize = 9007199254740992.0;  // 2^53: every integer below is a double

/// Reader takes numbers out of a packed tensor. Its errors name no place: the tensor comes from a
/// program of the same build.
class Reader {
 public:
  explicit Reader(const at::Tensor& packed) : packed_(packed.contiguous()) {
    require(packed_.dim() == 1 && packed_.scalar_type() == at::kDouble && packed_.is_cpu());
  }
  [[nodiscard]] bool done() const { return next_ == packed_.numel(); }
  double number() {
    require(!done());
    return packed_.const_data_ptr<double>()[next_++];
  }
  std::int64_t count(double most) {
    const double found = number();
    require(found >= 0 && found <= most &&
            found == static_cast<double>(static_cast<std::int64_t>(found)));
    return static_cast<std::int64_t>(found);
  }

 private:
  static void require(bool good) {
    if (!good) {
      throw Error(Errc::Internal, "a rank describes its values in another form than expected");
    }
  }
  const at::Tensor packed_;
  std::int64_t next_ = 0;
};

}  // namespace

DispatchedValue describe(const at::Tensor& tensor, bool gradient) {
  return {.gradient = gradient,
          .sizes = tensor.sizes().vec(),
          .norm = tensor.detach().to(at::kDouble).norm().item<double>()};
}

at::Tensor pack_values(const std::vector<DispatchedValue>& values) {
  std::vector<double> numbers;
  for (const DispatchedValue& value : values) {
    numbers.push_back(value.gradient ? 1 : 0);
    numbers.push_back(static_cast<double>(value.sizes.size()));
    for (const std::int64_t size : value.sizes) {
      numbers.push_back(static_cast<double>(size));
    }
    numbers.push_back(value.norm);
  }
  at::Tensor packed = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kDouble);
  std::ranges::copy(numbers, packed.mutable_data_ptr<double>());
  return packed;
}

std::vector<DispatchedValue> unpack_values(const at::Tensor& packed) {
  Reader reader(packed);
  std::vector<DispatchedValue> values;
  while (!reader.done()) {
    DispatchedValue& value = values.emplace_back();
    value.gradient = reader.count(1) == 1;
    for (std::int64_t left = reader.count(64); left > 0; --left) {
      value.sizes.push_back(reader.count(kMostSize));
    }
    value.norm = reader.number();
  }
  return values;
}

std::string to_string(const DispatchedColumn& column) {
  std::string text = fmt::format("column {}", column.number + 1);
  text += column.columns > 0 ? fmt::format(" of {}\n", column.columns) : "\n";
  for (const DispatchedTask& task : column.tasks) {
    text += fmt::format("  rank {:<3} {}", task.rank.value, to_string(task.task));
    for (const DispatchedValue& value : task.values) {
      text += fmt::format("  {}[{}] norm {:.4g}",
                          value.gradient ? "gradient " : "",
                          fmt::join(value.sizes, ", "),
                          value.norm);
    }
    text += '\n';
  }
  return text;
}

}  // namespace stagecraft
