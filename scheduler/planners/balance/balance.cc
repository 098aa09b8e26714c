#include "stagecraft/scheduler/planners/balance/balance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/hash.h"
#include "stagecraft/scheduler/planners/balance/cut_items.h"
#include "stagecraft/scheduler/planners/balance/recipes.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

constexpr double kSlack = 0.01;  // of the longest stage, to send fewer bytes between stages

/// A candidate with the simulator's results.
struct Tried {
  Candidate candidate;
  double seconds = 0;
  double peak = 0;       ///< bytes of the fullest device
  double in_flight = 0;  ///< most microbatches that a stage keeps
};

double peak_of(const Timeline& timeline) {
  return std::ranges::max_element(timeline.rows, {}, &RowTimeline::peak_bytes)->peak_bytes;
}

std::vector<Recipe> wanted_recipes(const PlanRequest& request) {
  std::vector<Recipe> wanted = recipes();
  if (request.schedule) {
    return {{.chunks = request.schedule->stages() / std::max(1, request.devices)}};
  }
  std::erase_if(wanted, [&](const Recipe& r) {
    return !takes_builder(request, r.builder->name) ||
           !request.allows_stages(r.chunks * request.devices);
  });
  return wanted;
}

/// Tries all recipes with microbatches of one size.
class SizeSearch {
 public:
  SizeSearch(const PlanRequest& request, int samples)
      : request_(request),
        graph_(WorkGraph::of(request.costs, samples)),
        microbatches_(request.batch / samples) {}

  [[nodiscard]] double tasks(const Recipe& recipe) const {
    return 3.0 * recipe.chunks * request_.devices * microbatches_;
  }

  /// Returns nothing if the same schedule was tried before. Errors: those of the builder.
  [[nodiscard]] std::optional<Tried> try_out(const Recipe& recipe) {
    const int stages = recipe.chunks * request_.devices;
    if (graph_.size() < stages) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} operators cannot make {} stages", graph_.size(), stages));
    }
    const auto [cut, is_new] = cuts_.try_emplace(stages);
    if (is_new) {
      cut->second = stages_of(balanced_cut(cut_items(graph_, 1), stages, kNoCap, kSlack));
    }
    Tried tried = simulated(recipe, cut->second);
    if (!seen_.emplace(stages, schedule_hash(tried.candidate.schedule)).second) {
      return std::nullopt;
    }
    return tried.peak <= request_.memory ? tried : with_cap(recipe, std::move(tried));
  }

 private:
  static constexpr double kNoCap = std::numeric_limits<double>::infinity();

  [[nodiscard]] Tried simulated(const Recipe& recipe, const StageOperators& cut) const {
    const StageGraph stages = stage_graph_of(graph_, cut);
    const Costs costs = costs_of(request_.costs, graph_, cut);
    Tried tried{.candidate = {.planner = "balance",
                              .stages = cut,
                              .microbatch_size = graph_.samples(),
                              .schedule_name = "given"}};
    Candidate& made = tried.candidate;
    if (request_.schedule) {
      made.schedule = given(stages);
    } else {
      build(recipe, stages, costs, made);
    }
    const Timeline timeline = simulate(made.schedule, stages, costs);
    tried.seconds = timeline.makespan;
    tried.peak = peak_of(timeline);
    for (const RowTimeline& row : timeline.rows) {
      tried.in_flight = std::max(
          tried.in_flight, std::ceil(static_cast<double>(row.peak_in_flight) / recipe.chunks));
    }
    return tried;
  }

  void build(const Recipe& recipe,
             const StageGraph& stages,
             const Costs& costs,
             Candidate& made) const {
    BuildRequest request{
        .devices = request_.devices, .microbatches = microbatches_, .set = recipe.set};
    made.schedule_name = recipe.name();
    std::string builder(recipe.builder->name);
    if (!stages.is_chain() && (builder == "1f1b" || builder == "gpipe")) {
      request.graph = stages;
      builder = "dag-" + builder;
      made.schedule_name = builder;
    }
    if (recipe.builder->chunks == ChunkRule::Open) {
      request.chunks = recipe.chunks;
    }
    if (recipe.builder->takes_costs) {
      request.costs = costs;
    }
    made.schedule = build_schedule(builder, request).to_list();
  }

  [[nodiscard]] Schedule given(const StageGraph& stages) const {
    const auto wrong = validate(*request_.schedule, stages, {.microbatches = microbatches_});
    if (!wrong.empty()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("the given schedule cannot run {} microbatches of stages that are "
                              "cut in the order of the forward: {}",
                              microbatches_,
                              to_string(wrong.front())));
    }
    return *request_.schedule;
  }

  /// Returns the same schedule for stages that hold at most their share of the memory; returns
  /// `tried` if no such cut exists.
  [[nodiscard]] Tried with_cap(const Recipe& recipe, Tried tried) const {
    double transient = 0;
    for (int op = 0; op < graph_.size(); ++op) {
      transient = std::max(transient, graph_.at(op).transient);
    }
    const double cap = (request_.memory - transient) / recipe.chunks;
    try {
      const StageOperators cut = stages_of(balanced_cut(
          cut_items(graph_, tried.in_flight), recipe.chunks * request_.devices, cap, kSlack));
      Tried capped = simulated(recipe, cut);
      return capped.peak < tried.peak ? capped : tried;
    } catch (const Error& error) {
      if (error.code() != Errc::UsageArgument) {
        throw;
      }
      return tried;  // the cap needs more stages
    }
  }

  const PlanRequest& request_;
  const WorkGraph graph_;
  const int microbatches_;
  std::map<int, StageOperators> cuts_;            // by number of stages
  std::set<std::pair<int, std::uint64_t>> seen_;  // stages and schedule
};

[[noreturn]] void refuse_memory(const Tried& least, double memory) {
  throw Error(Errc::PlanInfeasible,
              fmt::format("of cuts into stages of nearly the same time, the one that holds least "
                          "({} with microbatches of {}) needs {} more than there are: its fullest "
                          "device holds {}, and may hold {}; use more devices or smaller "
                          "microbatches, or ask capslog",
                          least.candidate.schedule_name,
                          least.candidate.microbatch_size,
                          enough_bytes_text(least.peak - memory),
                          bytes_text(least.peak),
                          bytes_text(memory)));
}

}  // namespace

std::optional<std::string> balance_refuses(const PlanRequest& request) {
  if (request.schedule) {
    const Schedule& given = *request.schedule;
    if (given.stage_graph().replicas() > 1 || std::ssize(given.rows()) != request.devices ||
        given.stages() % request.devices != 0) {
      return fmt::format(
          "balance expects a schedule of one copy of the model, with equally many stages on each "
          "of {}; the given one has {} on {}",
          count_text(request.devices, "device"),
          count_text(given.stages(), "stage"),
          count_text(given.rows().size(), "row"));
    }
  } else if (!request.allows_stages(request.devices)) {
    return fmt::format("balance gives every device a stage; at most {} are allowed for {}",
                       request.most_stages,
                       count_text(request.devices, "device"));
  } else if (wanted_recipes(request).empty()) {
    return fmt::format("balance does not cut for {}", request.builder.value_or("such stages"));
  }
  return request.lacks_pieces("balance");
}

std::vector<Candidate> balance_candidates(const PlanRequest& request) {
  std::vector<Tried> found;
  std::optional<Tried> lacking;
  std::optional<Error> reason;
  double tasks = 0;
  const std::vector<Recipe> wanted = wanted_recipes(request);
  const std::vector<int> sizes = request.sizes();
  for (std::size_t left = sizes.size(); left > 0; --left) {
    SizeSearch search(request, sizes[left - 1]);
    const double most = tasks + (kMaxBalanceTasks - tasks) / static_cast<double>(left);
    for (const Recipe& recipe : wanted) {
      if (tasks > 0 && tasks + search.tasks(recipe) > most) {
        continue;
      }
      const std::string part =
          fmt::format("balance: {} on microbatches of {}",
                      recipe.builder != nullptr ? recipe.name() : "the given schedule",
                      sizes[left - 1]);
      if (!request.proceeds(part, !found.empty())) {
        break;
      }
      try {
        std::optional<Tried> tried = search.try_out(recipe);
        tasks += search.tasks(recipe);
        if (tried && tried->peak <= request.memory) {
          found.push_back(*std::move(tried));
        } else if (tried && (!lacking || tried->peak < lacking->peak)) {
          lacking = std::move(tried);
        }
      } catch (const Error& error) {
        if (error.code() == Errc::Internal) {
          throw;
        }
        // The builder takes other numbers; the next one may take these.
        reason = reason ? reason : error;
      }
    }
  }
  if (found.empty() && lacking) {
    refuse_memory(*lacking, request.memory);
  }
  if (found.empty() && reason) {
    throw Error(*reason);
  }
  std::ranges::stable_sort(found, {}, &Tried::seconds);
  std::vector<Candidate> candidates;
  for (Tried& tried : found) {
    candidates.push_back(std::move(tried.candidate));
  }
  return candidates;
}

}  // namespace stagecraft
