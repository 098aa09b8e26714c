#include "stagecraft/tools/plan/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/costs/noise_warning.h"
#include "stagecraft/scheduler/costs/operator_list_hash.h"
#include "stagecraft/scheduler/model/number_range.h"
#include "stagecraft/scheduler/planners/what_if.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/table.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

std::size_t index(int number) {
  return static_cast<std::size_t>(number);
}

std::string size_text(const PlanProposal& p) {
  return fmt::format("{} x {}", p.microbatches, p.candidate.microbatch_size);
}

/// Returns the operators' ids by stage.
StageOperators ids_of(const PlanRequest& request, const PlanProposal& p) {
  return ids_of(WorkGraph::of(request.costs, request.costs.samples), p.candidate.stages);
}

/// Returns the text of every stage's ids: "0-11 30-35".
std::vector<std::string> id_texts(const StageOperators& ids_by_stage) {
  std::vector<std::string> texts;
  for (const std::vector<int>& ids : ids_by_stage) {
    std::vector<std::string> ranges;
    for (const auto& [first, last] : ranges_of(ids)) {
      ranges.push_back(first == last ? fmt::format("{}", first)
                                     : fmt::format("{}-{}", first, last));
    }
    texts.push_back(fmt::format("{}", fmt::join(ranges, " ")));
  }
  return texts;
}

/// Returns the devices of a stage of the cut: one for each of its copies.
std::vector<int> devices_of(const PlanProposal& p, std::size_t stage) {
  std::vector<int> devices;
  for (std::size_t s = 0; s < p.devices.size(); ++s) {
    if (index(p.stage_of_cut[s]) == stage) {
      std::ranges::copy(p.devices_of_row[index(p.devices[s])], std::back_inserter(devices));
    }
  }
  return devices;
}

/// Returns the schedule's first stage that is a copy of it.
std::size_t first_copy(const PlanProposal& p, std::size_t stage) {
  return index(static_cast<int>(std::ranges::find(p.stage_of_cut, static_cast<int>(stage)) -
                                p.stage_of_cut.begin()));
}

std::string stages_text(const PlanRequest& request, const PlanProposal& p) {
  std::vector<std::vector<std::string>> rows;
  const StageOperators operators = ids_of(request, p);  // one of the plan may be several joined
  const std::vector<std::string> ids = id_texts(operators);
  for (std::size_t s = 0; s < p.candidate.stages.size(); ++s) {
    const std::size_t copy = first_copy(p, s);
    const Durations& d = p.costs.stages.each[copy];
    rows.push_back({fmt::format("{}", s),
                    fmt::format("{}", fmt::join(devices_of(p, s), ", ")),
                    fmt::format("{}", operators[s].size()),
                    ids[s],
                    time_text(d.forward),
                    time_text(d.backward),
                    bytes_text(p.costs.stages.memory.fixed[copy]),
                    bytes_text(p.costs.stages.memory.activations[copy])});
  }
  return table_text({"stage", "device", "operators", "which", "F", "B", "weights", "kept"}, rows);
}

std::string devices_text(const PlanProposal& p) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t row = 0; row < p.busy.size(); ++row) {
    rows.push_back(
        {fmt::format("{}", fmt::join(p.devices_of_row[row], ", ")),
         fmt::format("{:.1f} %", 100 * p.busy[row] / p.step),
         bytes_text(p.bytes[row]),
         std::isfinite(p.memory[row]) ? bytes_text(usable(p.memory[row]) - p.bytes[row]) : "-"});
  }
  return table_text({"device", "computes", "holds at most", "left"}, rows);
}

/// Returns whether a measurement could not tell the two steps apart (PO-1).
bool are_alike(const PlanProposal& one, const PlanProposal& other) {
  return std::max(one.step, other.step) <= std::min(one.step, other.step) * (1 + kAlike);
}

/// Returns the plan with the shortest step among those that fit.
const PlanProposal& fastest_of(std::span<const PlanProposal> best_first) {
  return *std::ranges::min_element(
      best_first, {}, [](const PlanProposal& p) { return std::pair(!p.fits, p.step); });
}

/// Returns why a plan that is as fast comes after the first one.
std::string lead_text(const PlanProposal& best, const PlanProposal& other) {
  const std::size_t stages = best.candidate.stages.size();
  return stages < other.candidate.stages.size()
             ? fmt::format(
                   "the first has fewer stages ({} and {})", stages, other.candidate.stages.size())
             : fmt::format("the first holds no more on its fullest device ({} and {})",
                           bytes_text(best.most_bytes()),
                           bytes_text(other.most_bytes()));
}

std::string others_text(std::span<const PlanProposal> best_first, int top) {
  std::vector<std::vector<std::string>> rows;
  const PlanProposal& fastest = fastest_of(best_first);
  std::size_t alike = 0;
  for (std::size_t i = 0; i < best_first.size() && i < index(top); ++i) {
    const PlanProposal& p = best_first[i];
    const bool is_alike = p.fits && are_alike(p, fastest);
    alike += is_alike ? 1 : 0;
    rows.push_back({fmt::format("{}{}", i + 1, is_alike ? " =" : ""),
                    p.candidate.planner,
                    p.candidate.schedule_name,
                    size_text(p),
                    fmt::format("{}", p.candidate.stages.size()),
                    time_text(p.step),
                    fmt::format("{:+.1f} %", 100 * (p.step / best_first.front().step - 1)),
                    bytes_text(p.most_bytes()) + (p.fits ? "" : ", too much")});
  }
  std::string text = table_text(
      {"", "planner", "schedule", "microbatches", "stages", "step", "", "fullest device"}, rows);
  if (alike > 1) {
    text += fmt::format(
        "= within {:.0f} % of the fastest, which counts as equally fast: the plan with the fewest "
        "stages comes first, then the one that holds least\n",
        100 * kAlike);
  }
  return text;
}

/// Returns the fastest plan, if that is not the first; the best one that is noticeably slower; and
/// the fastest that does not fit.
std::vector<const PlanProposal*> rivals(std::span<const PlanProposal> best_first) {
  std::vector<const PlanProposal*> found;
  const PlanProposal& best = best_first.front();
  if (const PlanProposal& fastest = fastest_of(best_first); fastest.step < best.step) {
    found.push_back(&fastest);
  }
  for (const PlanProposal& p : best_first.subspan(1)) {
    if (p.fits && !are_alike(p, best)) {
      found.push_back(&p);
      break;
    }
  }
  const PlanProposal* barred = nullptr;
  for (const PlanProposal& p : best_first) {
    if (!p.fits && p.step < best.step && (barred == nullptr || p.step < barred->step)) {
      barred = &p;
    }
  }
  if (barred != nullptr) {
    found.push_back(barred);
  }
  return found;
}

Json json_of(const WhatIf& change) {
  switch (change.kind) {
    case WhatIf::Kind::Memory:
      return {{"memory_bytes", change.bytes}, {"device", change.from}};
    case WhatIf::Kind::Link:
      return {{"link", {change.from, change.to}}, {"times_as_fast", change.factor}};
    case WhatIf::Kind::Operators:
      break;
  }
  return {{"stage", change.stage}, {"times", change.factor}};
}

Json json_of(const PlanRequest& request, const PlanProposal& p) {
  Json stages = Json::array();
  const StageOperators ids = ids_of(request, p);
  for (std::size_t s = 0; s < ids.size(); ++s) {
    stages.push_back({{"device", p.first_device(p.devices[first_copy(p, s)])},
                      {"devices", devices_of(p, s)},
                      {"operators", ids[s]}});
  }
  return {{"planner", p.candidate.planner},
          {"schedule", p.candidate.schedule_name},
          {"microbatch_size", p.candidate.microbatch_size},
          {"stage_sizes", p.candidate.stage_sizes},
          {"microbatches", p.microbatches},
          {"step_seconds", p.step},
          {"bubble_fraction", bubble_of(p)},
          {"lower_bound_seconds", p.bound},
          {"rows", p.devices_of_row},
          {"bytes", p.bytes},
          {"zero", static_cast<int>(p.candidate.sharing)},
          {"fits", p.fits},
          {"binds", to_string(p.binds)},
          {"stages", stages},
          {"edges", p.graph.edges()}};
}

}  // namespace

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.4g} ms", seconds * 1e3) : fmt::format("{:.4g} s", seconds);
}

double bubble_of(const PlanProposal& plan) {
  double devices = 0, busy = 0;
  for (std::size_t row = 0; row < plan.busy.size(); ++row) {
    const auto copies = static_cast<double>(plan.devices_of_row[row].size());
    devices += copies;
    busy += copies * plan.busy[row];
  }
  return 1 - busy / (devices * plan.step);
}

std::string plan_text(const PlanRequest& request,
                      std::span<const PlanProposal> best_first,
                      int top) {
  const PlanProposal& best = best_first.front();
  std::string text =
      fmt::format("{}, a step of {}: {} by {}, {} microbatches, {} a step, predicted\n\n",
                  count_text(request.devices, "device"),
                  count_text(request.batch, "sample"),
                  best.candidate.schedule_name,
                  best.candidate.planner,
                  size_text(best),
                  time_text(best.step));
  text += stages_text(request, best) + '\n' + devices_text(best) + '\n';
  text += fmt::format(
      "what binds   {}\nno plan of these devices is below {}; this one is {:.1f} % above\n",
      to_string(best.binds),
      time_text(best.bound),
      100 * best.gap());
  if (best.candidate.sharing != Sharing::Nothing) {
    text += fmt::format("no plan fits unless copies share what they hold: train with --zero {}\n",
                        static_cast<int>(best.candidate.sharing));
  }
  if (!best.orders.empty()) {
    text +=
        "barriers and channels are part of the prediction; `train` runs the schedule without "
        "them\n";
  }
  text += fmt::format("the bytes that devices hold are predicted; {} a margin of {:.0f} %\n",
                      std::ranges::any_of(best.memory, [](double m) { return std::isfinite(m); })
                          ? "`left` is without"
                          : "add",
                      100 * kMemoryMargin);
  if (const auto warning = noise_warning(request.costs.device.noise)) {
    text += fmt::format("warning: {}\n", *warning);
  }
  if (best_first.size() > 1) {
    text += '\n' + others_text(best_first, top);
  }
  return text;
}

std::vector<std::string> why_sentences(const PlanRequest& request,
                                       std::span<const PlanProposal> best_first) {
  const PlanProposal& best = best_first.front();
  std::vector<std::string> sentences;
  for (const PlanProposal* rival : rivals(best_first)) {
    if (rival->fits && are_alike(*rival, best)) {
      sentences.push_back(fmt::format(
          "{} by {} ({}) takes {}, {:.1f} % less: within {:.0f} %, which counts as equally fast, "
          "and {}.",
          rival->candidate.schedule_name,
          rival->candidate.planner,
          size_text(*rival),
          time_text(rival->step),
          100 * (1 - rival->step / best.step),
          100 * kAlike,
          lead_text(best, *rival)));
      continue;
    }
    std::vector<std::string> changes;
    for (const WhatIf& change : what_it_takes(request, best, *rival)) {
      changes.push_back(to_string(change));
    }
    const bool was_cut_short = !request.proceeds("why", true);
    sentences.push_back(fmt::format(
        "{} by {} ({}) takes {}, {:.1f} % {}{}. {}",
        rival->candidate.schedule_name,
        rival->candidate.planner,
        size_text(*rival),
        time_text(rival->step),
        100 * std::abs(rival->step / best.step - 1),
        rival->step < best.step ? "less" : "more",
        rival->fits ? "" : ", and does not fit",
        !changes.empty() ? fmt::format("It would win if {}.", fmt::join(changes, ", or if "))
        : was_cut_short ? "--time-limit ended the search for a change that makes it the better one."
                        : "No faster link and no faster stage alone makes it the better one."));
  }
  if (sentences.empty()) {
    sentences.emplace_back("No other plan was found to compare it with.");
  }
  return sentences;
}

std::string why_text(const PlanRequest& request, std::span<const PlanProposal> best_first) {
  return fmt::format("\n{}\n", fmt::join(why_sentences(request, best_first), "\n"));
}

std::string plan_json(const PlanRequest& request,
                      std::span<const PlanProposal> best_first,
                      int top,
                      bool why,
                      const PlanBefore* before) {
  Json plans = Json::array();
  for (std::size_t i = 0; i < best_first.size() && i < index(top); ++i) {
    plans.push_back(json_of(request, best_first[i]));
  }
  Json answer{{"devices", request.devices},
              {"batch", request.batch},
              {"candidates", best_first.size()},
              {"equally_fast_within", kAlike},
              {"noise", request.costs.device.noise},
              {"plans", plans}};
  if (const auto warning = noise_warning(request.costs.device.noise)) {
    answer["warnings"] = {*warning};
  }
  if (before != nullptr) {
    answer["before"] = *before ? json_of(request, **before) : Json(nullptr);
  }
  if (why) {
    Json reasons = Json::array();
    for (const PlanProposal* rival : rivals(best_first)) {
      const bool alike = rival->fits && are_alike(*rival, best_first.front());
      Json changes = Json::array();
      for (const WhatIf& change :
           alike ? std::vector<WhatIf>() : what_it_takes(request, best_first.front(), *rival)) {
        changes.push_back(json_of(change));
      }
      reasons.push_back({{"plan", rival - best_first.data()},
                         {"step_seconds", rival->step},
                         {"fits", rival->fits},
                         {"equally_fast", alike},
                         {"would_win_if", changes},
                         {"searched_all", request.proceeds("why", true)}});
    }
    answer["why"] = reasons;
  }
  return command_json("plan", answer);
}

std::string cut_text(const PlanRequest& request, const PlanProposal& proposal) {
  std::vector<std::string> names;
  for (const OperatorCost& cost : request.costs.operators) {
    names.push_back(cost.name);
  }
  std::string text = fmt::format("@microbatch-size {}\n", proposal.candidate.microbatch_size);
  // Costs written by hand may have no names.
  if (std::ranges::none_of(names, &std::string::empty)) {
    text += fmt::format("@operators {}\n", to_string(hash_of_operators(names)));
  }
  for (const std::string& ids : id_texts(ids_of(request, proposal))) {
    text += fmt::format("{{{}}}\n", ids);
  }
  return text;
}

}  // namespace stagecraft::tools
