#include "stagecraft/tools/plan/what_if_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/plan/report.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kNone = "-";

/// Returns the row for which a device works; nothing if it has no task.
std::optional<std::size_t> row_of(const PlanProposal& plan, int device) {
  const auto row = std::ranges::find_if(plan.devices_of_row, [&](const std::vector<int>& devices) {
    return std::ranges::find(devices, device) != devices.end();
  });
  return row == plan.devices_of_row.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(row - plan.devices_of_row.begin()));
}

double bytes_on(const PlanProposal& plan, int device) {
  const auto row = row_of(plan, device);
  return row ? plan.bytes[*row] : 0;
}

/// Returns "+12.5 %"; empty if there is nothing to compare with.
std::string change_text(double before, double after) {
  return before > 0 ? fmt::format("{:+.1f} %", 100 * (after / before - 1)) : std::string();
}

/// Returns what a plan is: "1f1b by balance, 8 x 2".
std::string plan_name(const PlanProposal& plan) {
  return fmt::format("{} by {}, {} x {}",
                     plan.candidate.schedule_name,
                     plan.candidate.planner,
                     plan.microbatches,
                     plan.candidate.microbatch_size);
}

std::string bubble_text(const PlanProposal& plan) {
  return fmt::format("{:.1f} %", 100 * bubble_of(plan));
}

}  // namespace

std::string what_if_text(int devices, const PlanBefore& before, const PlanProposal& after) {
  const auto of_before = [&](const auto& text) {
    return before ? std::string(text(*before)) : std::string(kNone);
  };
  std::vector<std::vector<std::string>> rows{
      {"plan", of_before([](const PlanProposal& p) { return plan_name(p); }), plan_name(after), ""},
      {"step",
       of_before([](const PlanProposal& p) { return time_text(p.step); }),
       time_text(after.step),
       change_text(before ? before->step : 0, after.step)},
      {"bubble", of_before(&bubble_text), bubble_text(after), ""}};
  for (int device = 0; device < devices; ++device) {
    const auto held = [&](const PlanProposal& p) { return bytes_text(bytes_on(p, device)); };
    rows.push_back({fmt::format("device {}", device),
                    of_before(held),
                    held(after),
                    change_text(before ? bytes_on(*before, device) : 0, bytes_on(after, device))});
  }
  return table_text({"--what-if", "before", "after", ""}, rows) +
         (before ? "" : "no plan fits before\n");
}

}  // namespace stagecraft::tools
