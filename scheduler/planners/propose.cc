#include "stagecraft/scheduler/planners/propose.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/costs/row_devices.h"
#include "stagecraft/scheduler/costs/shared_bytes.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/notes/sharing_misfit.h"
#include "stagecraft/scheduler/planners/balance/recipes.h"
#include "stagecraft/scheduler/planners/constrained_search.h"
#include "stagecraft/scheduler/planners/device_order.h"
#include "stagecraft/scheduler/planners/fitting_stages.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/least_memory.h"
#include "stagecraft/scheduler/planners/pfeife/given_schedule.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife.h"
#include "stagecraft/scheduler/planners/registry.h"

namespace stagecraft {
namespace {

/// Keeps PO-1.
void sort_best_first(std::vector<PlanProposal>& all) {
  std::ranges::stable_sort(
      all, {}, [](const PlanProposal& p) { return std::tuple(!p.fits, p.step, p.most_bytes()); });
  if (all.empty()) {
    return;
  }
  const double alike = all.front().step * (1 + kAlike);
  const bool fits = all.front().fits;
  const auto end = std::ranges::find_if(
      all, [&](const PlanProposal& p) { return p.fits != fits || p.step > alike; });
  const auto simplest = std::min_element(all.begin(), end, [](const auto& a, const auto& b) {
    return std::pair(a.candidate.stages.size(), a.most_bytes()) <
           std::pair(b.candidate.stages.size(), b.most_bytes());
  });
  std::rotate(all.begin(), simplest, simplest + 1);
}

/// Judges the candidates that can keep the request's orders, the best first, until the search has
/// taken long enough and one fits. Returns why the first of the others cannot.
std::optional<std::string> add_judged(Judge& judge,
                                      const PlanRequest& request,
                                      const std::vector<Candidate>& candidates,
                                      std::vector<PlanProposal>& all) {
  std::optional<std::string> reason;
  for (const Candidate& candidate : candidates) {
    const bool has_one = std::ranges::any_of(all, [](const PlanProposal& p) { return p.fits; });
    if (!request.proceeds("judging " + candidate.schedule_name, has_one)) {
      break;
    }
    try {
      all.push_back(judge.propose(candidate));
    } catch (const Error& error) {
      if (error.code() != Errc::UsageArgument) {
        throw;
      }
      reason = reason.value_or(fmt::format("{}: {}", candidate.schedule_name, error.what()));
    }
  }
  return reason;
}

bool is_constrained(const PlanRequest& request) {
  return request.most_stages > 0 || !request.pinned.empty();
}

/// Fits the best proposals to links and devices that differ: chooses the device of each row, and
/// gives slow or small devices less.
void fit_to_devices(Judge& judge, const PlanRequest& request, std::vector<PlanProposal>& all) {
  constexpr std::size_t kFitted = 8;
  constexpr std::size_t kFittedTogether = 2;  // a new order of devices with stages that fit it
  constexpr int kMostTries = 400, kMostTogether = 60;
  const bool uneven = devices_differ(request.costs, request.devices);
  const bool orders =
      !request.schedule && (uneven || links_differ(request.costs.links, request.devices));
  const auto fitted = [&](PlanProposal proposal) {
    return with_fitting_stages(judge, request, std::move(proposal));
  };
  const auto for_best = [&](const char* what, std::size_t count, auto&& change) {
    for (std::size_t i = 0; i < std::min(count, all.size()); ++i) {
      const bool any_fits = std::ranges::any_of(all, &PlanProposal::fits);
      if (!request.proceeds(fmt::format("{} for {}", what, all[i].candidate.schedule_name),
                            any_fits)) {
        break;
      }
      all[i] = change(std::move(all[i]));
    }
    sort_best_first(all);
  };
  if (int tries = kMostTries; orders) {
    for_best("the order of devices", kFitted, [&](PlanProposal one) {
      return best_device_order(judge, request, std::move(one), tries);
    });
  }
  if (uneven) {
    for_best("stages for uneven devices", kFitted, fitted);
  }
  if (int tries = kMostTogether; uneven && orders) {
    for_best("stages and order of devices", kFittedTogether, [&](PlanProposal one) {
      return best_device_order(judge, request, std::move(one), tries, fitted);
    });
  }
}

/// Returns whether plans have no copies: orders name tasks of one pipeline, pins name devices, and
/// stages of all sizes share one step.
bool is_one_pipeline(const PlanRequest& request) {
  return request.phases || !request.orders.empty() || request.shared_channels ||
         !request.pinned.empty() || request.stage_sizes;
}

/// Returns how many copies of the given schedule make a plan for all devices.
/// Errors: UsageArgument if no number does, and for a schedule whose rows have ranks already.
int copies_of_given(const PlanRequest& request) {
  if (!request.schedule->headers().places.empty()) {
    throw Error(Errc::UsageArgument,
                "a plan expects the schedule of one pipeline, found one with @place; leave that "
                "out, and give the number of devices of all copies");
  }
  const int ranks = Layout::of(*request.schedule).ranks();
  const int copies = ranks > 0 ? request.devices / ranks : 0;
  if (copies * ranks != request.devices || (copies != 1 && is_one_pipeline(request))) {
    throw Error(Errc::UsageArgument,
                fmt::format("the schedule runs on {}, found a request for {}; plan for {}{}",
                            count_text(ranks, "device"),
                            request.devices,
                            ranks,
                            is_one_pipeline(request) ? "" : " or a multiple"));
  }
  const int microbatches = copies * request.schedule->microbatches();
  if (copies > 1 && microbatches > 0 && request.batch % microbatches != 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} copies of the schedule have {}, which do not divide a "
                            "batch of {}; give a batch that is a multiple",
                            copies,
                            count_text(microbatches, "microbatch"),
                            request.batch));
  }
  return copies;
}

/// Errors: UsageArgument for fewer stages than devices, if plans have no copies.
void require_enough_stages(const PlanRequest& request) {
  if (is_one_pipeline(request) && !request.allows_stages(request.devices)) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("plans of at most {} leave some of {} devices without one, and the other "
                    "constraints allow no copies; plan for {}, or allow more stages",
                    count_text(request.most_stages, "stage"),
                    request.devices,
                    count_text(request.most_stages, "device")));
  }
}

/// Returns in how many copies plans may run the pipeline, ascending.
/// Errors: those of copies_of_given.
std::vector<int> numbers_of_copies(const PlanRequest& request) {
  if (request.schedule) {
    return {copies_of_given(request)};
  }
  std::vector<int> numbers{1};
  if (is_one_pipeline(request)) {
    return numbers;
  }
  const std::vector<int> sizes = request.sizes();
  for (int copies = 2; copies <= request.devices; ++copies) {
    const bool divides = request.devices % copies == 0 && request.batch % copies == 0;
    if (divides && std::ranges::any_of(
                       sizes, [&](int samples) { return request.batch / copies % samples == 0; })) {
      numbers.push_back(copies);
    }
  }
  return numbers;
}

/// Returns the memory of the device with the most. Searches take every device to be like that one,
/// and fit_to_devices gives the others less.
double most_memory(const PlanRequest& request) {
  double most = 0;
  for (int device = 0; device < request.devices; ++device) {
    most = std::max(most, memory_of(request.costs.devices, device, request.memory));
  }
  return most;
}

/// Returns the request for one of the copies of a pipeline, with the memory that predictions may
/// fill.
PlanRequest request_of_copy(const PlanRequest& request, int copies) {
  PlanRequest one = request;
  one.memory = usable(most_memory(request));
  one.costs.devices.clear();
  one.devices /= copies;
  one.batch /= copies;
  one.copies_of_stages = copies == 1 && !is_one_pipeline(request);
  if (copies > 1) {
    one.microbatch_sizes.clear();
    std::ranges::copy_if(request.sizes(),
                         std::back_inserter(one.microbatch_sizes),
                         [&](int samples) { return one.batch % samples == 0; });
  }
  if (one.costs.device.processors > 0) {
    one.costs.device.processors = std::max(1, one.costs.device.processors / copies);
  }
  return one;
}

Candidate copied(Candidate candidate, int copies, Sharing sharing) {
  if (copies > 1) {
    candidate.schedule = in_copies(candidate.schedule, copies);
    candidate.schedule_name += fmt::format(" dp={}", copies);
  }
  if (sharing != Sharing::Nothing) {
    candidate.sharing = sharing;
    candidate.schedule_name += fmt::format(" zero={}", static_cast<int>(sharing));
  }
  return candidate;
}

/// Returns how many copies of the model a pipeline has in the schedule that the request names.
/// Without a name no schedule with copies is searched: it holds more than one pipeline.
int copies_in_schedule(const PlanRequest& request) {
  if (request.schedule) {
    return Layout::of(*request.schedule).replicas();
  }
  return request.builder && has_two_copies(find_builder(*request.builder)) ? 2 : 1;
}

/// Collects the results of all planners for one request: for every number of copies of the
/// pipeline that divides the devices.
class Proposals {
 public:
  Proposals(const PlanRequest& request, std::string_view planner)
      : request_(request), judge_(request), planner_(planner) {}

  /// Errors: UsageArgument for a schedule or constraints that no plan for all devices keeps.
  void search() {
    require_enough_stages(request_);
    const std::vector<int> numbers = numbers_of_copies(request_);
    for (const int copies : numbers) {
      is_fewest_ = copies == numbers.front();
      if (!is_fewest_ &&
          !request_.proceeds(fmt::format("{} copies of a pipeline", copies), !all_.empty())) {
        return;
      }
      copies_ = copies;
      searched_ = request_of_copy(request_, copies_);
      ask_planners();
      look_closer();
    }
    is_fewest_ = false;
    for (const Sharing level : {Sharing::States, Sharing::Gradients, Sharing::Weights}) {
      search_sharing(level, numbers);
    }
  }

  [[nodiscard]] std::vector<PlanProposal> take() && {
    sort_best_first(all_);
    fit_to_devices(judge_, request_, all_);
    if (!any_fits()) {
      refuse();
    }
    return std::move(all_);
  }

 private:
  /// Searches plans whose copies share so much, if nothing fits with less. Takes the first number
  /// of copies that fits.
  void search_sharing(Sharing sharing, const std::vector<int>& numbers) {
    if (any_fits() || !request_.may_share || std::isinf(most_memory(request_))) {
      return;
    }
    if (request_.schedule &&
        sharing_misfit(*request_.schedule, request_.schedule->stage_graph(), sharing)) {
      return;
    }
    const int in_schedule = copies_in_schedule(request_);
    for (const int copies : numbers) {
      const int sharers = copies * in_schedule;
      if (sharers == 1 || any_fits() ||
          !request_.proceeds(fmt::format("{} copies that share", sharers), !all_.empty())) {
        continue;
      }
      sharing_ = sharing;
      copies_ = copies;
      PlanRequest shared = request_;
      shared.costs = with_shared_parameters(std::move(shared.costs), sharing, sharers);
      if (sharing >= Sharing::Gradients) {
        shared.most_summed = kSharedBucket;
      }
      searched_ = request_of_copy(shared, copies);
      ask_planners();
      look_closer();
    }
  }

  void ask_planners() {
    for (const PlannerInfo& info : planners()) {
      if (planner_ != "auto" && info.name != find_planner(planner_).name) {
        continue;
      }
      if (const auto reason = info.refuses(searched_)) {
        say(info.name, *reason);
        continue;
      }
      if (!searched_.proceeds(fmt::format("{} begins", info.name), !all_.empty())) {
        return;
      }
      try_further(info.name, [&] { return constrained_search(info.search, searched_); });
    }
  }

  /// Searches cuts for builders as if each were named: for the most promising ones, or for all if
  /// nothing fits. If still nothing fits, searches stages that hold little, whatever time they
  /// take. Copies of a pipeline hold more than one pipeline on all devices, so that does both.
  void look_closer() {
    if (planner_ != "auto" || request_.schedule) {
      return;
    }
    const bool needs_memory = is_fewest_ && lacks_all();
    if (!request_.builder && !pfeife_refuses(searched_) &&
        searched_.proceeds("further cuts for builders", !all_.empty())) {
      const CutEffort effort = needs_memory ? CutEffort::most() : CutEffort{};
      try_further("builders", [&] {
        return constrained_search(
            [&](const PlanRequest& seen) { return best_cuts_of_builders(seen, effort); },
            searched_);
      });
    }
    if (needs_memory && lacks_all() && takes_builder(request_, "1f1b") &&
        request_.devices <= request_.pieces() &&
        searched_.proceeds("the least memory", !all_.empty())) {
      try_further("least memory",
                  [&] { return constrained_search(least_memory_candidates, searched_); });
    }
  }

  /// Keeps a reason why there is no plan. Those of the fewest copies say what is wrong.
  void say(std::string_view whose, std::string_view reason) {
    if (is_fewest_) {
      reasons_.push_back(fmt::format("{}: {}", whose, reason));
    }
  }

  template <class Search>
  void add(std::string_view whose, Search&& search) {
    try {
      std::vector<Candidate> candidates;
      for (Candidate& candidate : search()) {
        candidates.push_back(copied(std::move(candidate), copies_, sharing_));
      }
      if (const auto reason = add_judged(judge_, request_, candidates, all_)) {
        say(whose, *reason);
      }
    } catch (const Error& error) {
      if (error.code() != Errc::PlanInfeasible) {
        throw;
      }
      lacks_memory_ = true;
      say(whose, error.what());
    }
  }

  /// Its refusal does not affect the results of others.
  template <class Search>
  void try_further(std::string_view whose, Search&& search) {
    try {
      add(whose, search);
    } catch (const Error& error) {
      if (error.code() == Errc::Internal || error.code() == Errc::ScheduleInvalid) {
        throw;
      }
      refusal_ = refusal_ ? refusal_ : error;
      say(whose, error.what());
    }
  }

  /// Returns whether memory is what plans lack, and none fits.
  [[nodiscard]] bool lacks_all() const {
    return (std::isfinite(searched_.memory) || !all_.empty()) && !any_fits();
  }
  [[nodiscard]] bool any_fits() const {
    return std::ranges::any_of(all_, [](const PlanProposal& p) { return p.fits; });
  }

  /// Returns whether smaller activations would let the plan fit: bf16 leaves weights, gradients and
  /// the optimizer's states as they are.
  static bool would_fit_without_activations(const PlanProposal& plan, int row) {
    double fixed = 0;
    for (std::size_t s = 0; s < plan.devices.size(); ++s) {
      fixed += plan.devices[s] == row ? plan.costs.stages.memory.fixed[s] : 0;
    }
    return fixed < usable(plan.memory[static_cast<std::size_t>(row)]);
  }

  /// Returns what makes activations smaller, as far as the costs do not say that it is done.
  [[nodiscard]] std::string half_type_advice() const {
    const std::string& precision = request_.costs.device.precision;
    if (!precision.empty() && precision != "fp32") {
      return " or smaller microbatches";
    }
    return fmt::format(", smaller microbatches, or --precision bf16 (of train and profile){}",
                       precision.empty() ? " if the costs are of float32" : "");
  }

  [[noreturn]] void refuse() {
    bool needs_less_activations = false;
    if (all_.empty() && !lacks_memory_ && refusal_) {
      throw Error(*refusal_);
    }
    if (!all_.empty()) {
      const PlanProposal& least = *std::ranges::min_element(all_, {}, &PlanProposal::lacks);
      const int row = least.tightest();
      lacks_memory_ = true;
      needs_less_activations = would_fit_without_activations(least, row);
      reasons_.push_back(fmt::format(
          "of all cuts found, the one that lacks least needs {}, on device {} of {}: {} more "
          "than there are",
          enough_bytes_text(least.lacks() + least.memory[static_cast<std::size_t>(row)]),
          least.first_device(row),
          least.candidate.schedule_name,
          enough_bytes_text(least.lacks())));
    }
    if (sharing_ != Sharing::Nothing) {
      reasons_.emplace_back("copies that share what they hold (--zero) do not fit either");
    }
    const std::string whose = planner_ == "auto" ? "" : fmt::format(" of {}", planner_);
    if (lacks_memory_) {
      throw Error(
          Errc::PlanInfeasible,
          fmt::format("no plan{} fits the devices{} with a margin of {:.0f} %:\n  {}\n{}{}use "
                      "more devices, devices with more memory{}",
                      whose,
                      is_constrained(request_) ? " and the constraints on stages" : "",
                      100 * kMemoryMargin,
                      fmt::join(reasons_, "\n  "),
                      whose.empty() ? "" : "ask planner auto, which tries more, or ",
                      request_.schedule || request_.builder
                          ? "leave the choice of a leaner schedule to the planner, or "
                          : "",
                      needs_less_activations ? half_type_advice() : " or smaller microbatches"));
    }
    throw Error(Errc::UsageArgument,
                fmt::format("no plan{} was made:\n  {}\n{}",
                            whose,
                            fmt::join(reasons_, "\n  "),
                            request_.orders.empty() ? "ask another planner, or --planner auto"
                                                    : "give orders that their schedules can keep"));
  }

  const PlanRequest& request_;
  Judge judge_;
  int copies_ = 1;  // of the pipeline
  Sharing sharing_ = Sharing::Nothing;
  bool is_fewest_ = true;  // no fewer copies are possible
  PlanRequest searched_;   // for one of them
  std::string_view planner_;
  std::vector<PlanProposal> all_;
  std::vector<std::string> reasons_;
  std::optional<Error> refusal_;  // the first one that is not for lack of memory
  bool lacks_memory_ = false;
};

}  // namespace

std::vector<PlanProposal> propose(const PlanRequest& request, std::string_view planner) {
  Proposals proposals(request, planner);
  proposals.search();
  return std::move(proposals).take();
}

}  // namespace stagecraft
