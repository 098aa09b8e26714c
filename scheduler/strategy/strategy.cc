#include "stagecraft/scheduler/strategy/strategy.h"

#include <algorithm>

#include <fmt/format.h>

namespace stagecraft {
namespace {

Filter of_task(int stage, int microbatch, Pass pass) {
  return {.tags = {{std::string(kStageTag), stage}, {std::string(kMicrobatchTag), microbatch}},
          .pass = pass};
}

}  // namespace

Strategy& Strategy::split(Filter filter, int parts) {
  directives_.emplace_back(SplitDirective{.filter = std::move(filter), .parts = parts});
  return *this;
}

Strategy& Strategy::place(Filter filter, std::vector<Rank> ranks, std::string stream) {
  directives_.emplace_back(PlaceDirective{std::move(filter), std::move(ranks), std::move(stream)});
  return *this;
}

Strategy& Strategy::replicate(Filter filter, std::vector<Rank> ranks, ReplicateOptions options) {
  directives_.emplace_back(
      ReplicateDirective{std::move(filter), std::move(ranks), std::move(options)});
  return *this;
}

Strategy& Strategy::shard(Filter filter, std::vector<Rank> ranks, std::string stream, int parts) {
  directives_.emplace_back(
      ShardDirective{std::move(filter), std::move(ranks), std::move(stream), parts});
  return *this;
}

Strategy& Strategy::order(std::vector<OrderDirective::Group> groups) {
  directives_.emplace_back(OrderDirective{std::move(groups)});
  return *this;
}

std::string Strategy::place_of(std::size_t directive) const {
  const std::string line =
      directive < lines_.size() ? fmt::format(" (line {})", lines_[directive]) : "";
  return fmt::format("directive {}{}", directive + 1, line);
}

int placed_stages(const Strategy& strategy) {
  int stages = 0;
  for (const Directive& directive : strategy.directives()) {
    if (const auto* const place = std::get_if<PlaceDirective>(&directive)) {
      stages = std::max(stages, place->filter.number_of(kStageTag).value_or(-1) + 1);
    }
  }
  return stages;
}

namespace filters {

Filter everything() {
  return {};
}

Filter stage(int number) {
  return {.tags = {{std::string(kStageTag), number}}, .pass = std::nullopt};
}

Filter forward(int stage, int microbatch) {
  return of_task(stage, microbatch, Pass::F);
}

Filter backward(int stage, int microbatch) {
  return of_task(stage, microbatch, Pass::B);
}

Filter backward_input(int stage, int microbatch) {
  return of_task(stage, microbatch, Pass::BI);
}

Filter backward_weight(int stage, int microbatch) {
  return of_task(stage, microbatch, Pass::BW);
}

}  // namespace filters
}  // namespace stagecraft
