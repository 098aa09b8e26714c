#include "stagecraft/tests/simulate/shape.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/models.h"

namespace stagecraft::simulation {
namespace {

enum class Model { Plain, Half, Copied, Experts };

struct Way {
  std::string name, schedule;
  int chunks = 1;  ///< stages of a rank
  Model model = Model::Plain;
  Sharing sharing = Sharing::Nothing;
  bool divides = false;  ///< the experts
};

const std::vector<Way>& all_ways() {
  static const std::vector<Way> kWays{
      {.name = "1f1b", .schedule = "1f1b"},
      {.name = "gpipe", .schedule = "gpipe"},
      {.name = "interleaved", .schedule = "interleaved", .chunks = 2},
      {.name = "zb-v", .schedule = "zb-v", .chunks = 2},
      {.name = "dualpipev", .schedule = "dualpipev", .chunks = 2},
      {.name = "half", .schedule = "1f1b", .model = Model::Half},
      {.name = "copies", .schedule = "1f1b", .model = Model::Copied},
      {.name = "zero1", .schedule = "1f1b", .model = Model::Copied, .sharing = Sharing::States},
      {.name = "zero2", .schedule = "1f1b", .model = Model::Copied, .sharing = Sharing::Gradients},
      {.name = "zero3", .schedule = "1f1b", .model = Model::Copied, .sharing = Sharing::Weights},
      {.name = "whole-experts", .schedule = "1f1b", .model = Model::Experts},
      {.name = "experts", .schedule = "1f1b", .model = Model::Experts, .divides = true},
  };
  return kWays;
}

const Way& way_of(const std::string& name) {
  return *std::ranges::find(all_ways(), name, &Way::name);
}

int copies_in(const Way& way, int ranks) {
  const bool is_pipeline = way.model == Model::Plain || way.model == Model::Half;
  return is_pipeline ? 1 : ranks >= 8 && ranks % 4 == 0 ? 4 : 2;
}

Program program_of(const Way& way, int ranks, bool outlives) {
  tests::ModelOptions model{.stages = way.chunks * ranks / copies_in(way, ranks), .linear = true};
  model.spare = !outlives;  // what no stage uses is with the driver alone
  model.layers = std::max(model.layers, model.stages);
  if (way.model == Model::Copied || way.model == Model::Experts) {
    model.statistics = false;                            // each copy has those of its own samples
    model.width = way.model == Model::Copied ? 64 : 16;  // 64: shards end inside of layers
    model.experts = way.model == Model::Experts ? 4 : 0;
  }
  if (way.model != Model::Half) {
    return tests::make_program(model);
  }
  model.dropout = 0.2;
  const AutocastGuard autocast;
  AutocastGuard::set({.enabled = true, .dtype = at::kHalf});
  return tests::make_program(model);
}

Execution new_execution(const Way& way, int ranks, bool outlives) {
  const int copies = copies_in(way, ranks);
  const Schedule rows = build_schedule(
      way.schedule, {.devices = ranks / copies, .microbatches = tests::kMicrobatches / copies});
  ReplicateOptions sums = ReplicateOptions::at(way.sharing);
  sums.bucket_bytes = std::int64_t{1} << 14;  // a layer of 64 x 64
  return make_execution(program_of(way, ranks, outlives),
                        copies > 1 ? in_copies(rows, copies) : rows,
                        sums,
                        way.divides ? "EP" : "");
}

}  // namespace

int Shape::copies() const {
  return copies_in(way_of(way), ranks);
}

bool Shape::has_whole_copies() const {
  return copies() > 1 && way_of(way).sharing == Sharing::Nothing && !way_of(way).divides;
}

tests::CourseOptions Shape::course_options() const {
  tests::CourseOptions options{.clip = clip, .batches = batches, .same_batch = bursts};
  if (way_of(way).model == Model::Half) {
    options.loss_scaling = LossScaling{.initial = 0x1p40, .growth_interval = 3};  // overflows first
  }
  return options;
}

std::string Shape::text() const {
  return fmt::format("{} ranks train by {}{}{}{}{}{}{}",
                     ranks,
                     way,
                     clip ? ", and clip" : "",
                     batches > 1 ? fmt::format(", {} batches to an update", batches) : "",
                     evaluates ? ", and evaluate" : "",
                     bursts ? ", several steps at once" : "",
                     mirror ? "" : ", without mirrors",
                     outlives ? ", and outlive their drivers" : "");
}

const std::vector<std::string>& ways() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Way& way : all_ways()) {
      names.push_back(way.name);
    }
    return names;
  }();
  return kNames;
}

bool fits(const std::string& way, int ranks) {
  return ranks % copies_in(way_of(way), ranks) == 0 &&
         (way != "dualpipev" || 2 * ranks <= tests::kMicrobatches);
}

Shape draw_shape(Random& random, int ranks, const std::string& way, bool outlives) {
  constexpr int kMostEvaluated = 16;  // ranks, because the unbroken run has as many threads
  Shape shape{.way = way, .ranks = ranks};
  while (shape.way.empty() || !fits(shape.way, ranks)) {
    shape.way = ways()[random.below(ways().size())];
  }
  if (random.one_in(2)) {
    shape.clip = 0.1;
  }
  shape.batches = random.one_in(5) ? 2 : 1;
  const bool evaluates = random.one_in(5);
  shape.evaluates = evaluates && ranks <= kMostEvaluated &&
                    way_of(shape.way).model != Model::Half;  // its dropout stays on
  shape.bursts = !shape.evaluates && random.one_in(2);
  shape.mirror = !random.one_in(shape.has_whole_copies() ? 2 : 4) || shape.copies() == 1;
  shape.outlives = (random.one_in(5) || outlives) && shape.mirror;
  return shape;
}

const Execution& execution_of(const std::string& way, int ranks, bool outlives) {
  static std::map<std::tuple<std::string, int, bool>, Execution> all;
  const std::tuple key(way, ranks, outlives);
  const auto known = all.find(key);
  return known != all.end()
             ? known->second
             : all.emplace(key, new_execution(way_of(way), ranks, outlives)).first->second;
}

tests::Course make_course_of(const Shape& shape) {
  const Way& way = way_of(shape.way);
  Execution execution =
      new_execution(way, shape.ranks, shape.outlives);  // whose weights it changes
  if (way.divides) {
    return tests::Course(std::move(execution), shape.course_options());
  }
  auto sums = std::make_shared<const SumOrder>(sum_order_of(*execution.plan));
  return tests::Course(execution.sized, std::move(sums), shape.course_options());
}

std::vector<std::string> other_ways(const std::string& way, int ranks) {
  const Way& own = way_of(way);
  std::vector<std::string> others;
  for (const Way& other : all_ways()) {
    if (other.name != way && other.model == own.model && other.chunks == own.chunks &&
        fits(other.name, ranks)) {
      others.push_back(other.name);
    }
  }
  return others;
}

}  // namespace stagecraft::simulation
