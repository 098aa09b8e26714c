#include "stagecraft/actors/executor/stage/divided_squares.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ops/zeros.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// Returns the runs of blocks of a part, whose squares are to be added.
std::vector<SquareTree::Run> runs_of(const ShardLayout::Part& part, bool is_complex) {
  if (part.size() == 0) {
    return {};
  }
  const std::int64_t numbers = is_complex ? 2 : 1;  // in an element
  return SquareTree::runs_of(part.begin * numbers / kNormBlock,
                             (part.end * numbers + kNormBlock - 1) / kNormBlock);
}

}  // namespace

void DividedSquares::add(std::size_t parameter,
                         bool is_complex,
                         const std::vector<ShardLayout::Part>& parts) {
  const auto has_some = [](const ShardLayout::Part& part) { return part.size() > 0; };
  if (std::ranges::count_if(parts, has_some) < 2) {
    return;
  }
  Divided divided{.parameter = parameter, .begins = {}, .runs = {}};
  divided.first = static_cast<std::int32_t>(std::ranges::find_if(parts, has_some) - parts.begin());
  for (const ShardLayout::Part& part : parts) {
    divided.begins.push_back(part.begin);
    divided.runs.push_back(runs_of(part, is_complex));
    width_ = std::max(width_, divided.runs.back().size());
  }
  all_.push_back(std::move(divided));
}

at::Tensor DividedSquares::of_shard(
    std::int32_t shard, const std::function<at::Tensor(std::size_t parameter)>& gradient_of) const {
  at::Tensor squares = at::zeros({static_cast<std::int64_t>(all_.size() * width_)}, at::kDouble);
  double* out = squares.mutable_data_ptr<double>();
  for (const Divided& divided : all_) {
    const auto s = static_cast<std::size_t>(shard);
    if (!divided.runs[s].empty()) {
      const SquareTree tree = squares_of(gradient_of(divided.parameter), divided.begins[s]);
      std::ranges::transform(tree.runs(), out, &SquareTree::Run::sum);
    }
    out += width_;
  }
  return squares;
}

void DividedSquares::take(const at::Tensor& of_shards) {
  const std::size_t shards = all_.empty() ? 0 : all_.front().runs.size();
  SC_CHECK(static_cast<std::size_t>(of_shards.numel()) == shards * all_.size() * width_,
           "every shard sends as many squares");
  const double* const in = of_shards.const_data_ptr<double>();
  for (std::size_t d = 0; d < all_.size(); ++d) {
    SquareTree tree;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      const double* sum = in + (shard * all_.size() + d) * width_;
      for (SquareTree::Run run : all_[d].runs[shard]) {
        run.sum = *sum++;
        tree.add(run);
      }
    }
    all_[d].squares = tree.total();
  }
}

}  // namespace stagecraft
