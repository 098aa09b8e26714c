#include "stagecraft/examples/costs/cost_models.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::examples {
namespace {

constexpr CostModel kModels[] = {
    {"mmt", "4 branches of 8 transformer layers", [] { return transformer_branches(); }},
    {"dlrm",
     "7 branches of 4 feed-forward layers, 7 of an embedding",
     [] { return feed_forward_branches({.sparse = 7}); }},
    {"candle-uno", "7 branches of 4 feed-forward layers", [] { return feed_forward_branches(); }},
    {"case-study",
     "2 branches of 4 transformer layers",
     [] { return transformer_branches({.branches = 2, .layers = 4}); }},
    {"transformer",
     "a chain of 32 transformer layers",
     [] { return transformer_branches({.branches = 1, .layers = 32}); }},
    {"skips", "a chain of 2,000 random operators with skips", [] { return skip_chain(); }}};

/// Draws numbers that are the same everywhere.
class Uneven {
 public:
  explicit Uneven(unsigned seed) : random_(seed) {}

  double operator()(double low, double high) {
    const auto share = static_cast<double>(random_() - std::minstd_rand::min()) /
                       (std::minstd_rand::max() - std::minstd_rand::min());
    return low + share * (high - low);
  }

 private:
  std::minstd_rand random_;
};

}  // namespace

Costs transformer_branches(const TransformerShape& shape, const CostDeviceModel& device) {
  CostGraph graph(device);
  std::vector<int> ends;
  for (int b = 0; b < shape.branches; ++b) {
    std::vector<int> last;
    for (int l = 0; l < shape.layers; ++l) {
      const std::string name = fmt::format("branch{}.{}.", b, l);
      last = {graph.attention(name + "attention", last, shape.tokens, shape.width, shape.heads)};
      last = {graph.linear(name + "up", last, shape.tokens, shape.width, shape.hidden)};
      last = {graph.linear(name + "down", last, shape.tokens, shape.hidden, shape.width)};
    }
    ends.push_back(last.front());
  }
  const double width = shape.width * shape.branches;
  if (shape.branches > 1) {
    ends = {graph.concat("concat", ends, shape.tokens, width)};
  }
  graph.linear("head", ends, shape.tokens, width, shape.width);
  return std::move(graph).take();
}

Costs feed_forward_branches(const FeedForwardShape& shape, const CostDeviceModel& device) {
  CostGraph graph(device);
  std::vector<int> ends;
  for (int b = 0; b < shape.branches; ++b) {
    std::vector<int> last;
    for (int l = 0; l < shape.layers; ++l) {
      last = {graph.linear(fmt::format("dense{}.{}", b, l), last, 1, shape.width, shape.width)};
    }
    ends.push_back(last.front());
  }
  for (int b = 0; b < shape.sparse; ++b) {
    ends.push_back(
        graph.embedding(fmt::format("sparse{}", b), 1, shape.table_rows, shape.sparse_width));
  }
  const double width = shape.width * shape.branches + shape.sparse_width * shape.sparse;
  const int together = graph.concat("concat", ends, 1, width);
  const int top = graph.linear("top", {together}, 1, width, shape.top_width);
  graph.linear("out", {top}, 1, shape.top_width, 1);
  return std::move(graph).take();
}

Costs skip_chain(const SkipChainShape& shape) {
  constexpr double kMegabyte = 1e6;
  Uneven uneven(shape.seed);
  Costs costs;
  costs.links.usual = CostDeviceModel().link;
  for (int id = 0; id < shape.operators; ++id) {
    const std::string name = fmt::format("operator{}", id);
    const double seconds = 1e-3 * uneven(0.1, 1) * uneven(0.1, 2);
    OperatorCost op{.id = id,
                    .name = name,
                    .forward = seconds,
                    .backward_input = seconds * uneven(0.8, 1.2),
                    .backward_weight = seconds * uneven(0.8, 1.2),
                    .update = 1e-5,
                    .kept = kMegabyte * uneven(0, 4),
                    .transient = kMegabyte * uneven(0, 4),
                    .output = kMegabyte * uneven(0.5, 2),
                    .parameters = {name}};
    const auto read = [&](int producer) {
      const double bytes = costs.operators[static_cast<std::size_t>(producer)].output;
      op.reads.push_back({producer, 0, bytes});
    };
    if (id == 0) {
      op.input = kMegabyte;
    } else {
      read(id - 1);
    }
    if (id > 1 && uneven(0, 1) < 0.1) {
      read(static_cast<int>(uneven(std::max(0, id - 40), id - 1)));
    }
    const double weight = kMegabyte * uneven(0, 2);
    costs.parameters.push_back({name, weight, 4 * weight});
    costs.operators.push_back(std::move(op));
  }
  return costs;
}

std::span<const CostModel> cost_models() {
  return kModels;
}

const CostModel& find_cost_model(std::string_view name) {
  const auto found = std::ranges::find(kModels, name, &CostModel::name);
  if (found == std::end(kModels)) {
    std::string known;
    for (const CostModel& model : kModels) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", model.name);
    }
    throw Error(Errc::UsageArgument,
                fmt::format("no cost graph is called {}; there are {}", name, known));
  }
  return *found;
}

}  // namespace stagecraft::examples
