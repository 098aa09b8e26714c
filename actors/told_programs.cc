#include "stagecraft/actors/told_programs.h"

#include <algorithm>
#include <utility>

#include "stagecraft/base/check.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/replicate.h"

namespace stagecraft {
namespace {

// A program with new metrics in every evaluation drops the one that was used longest ago.
constexpr std::size_t kMostPrograms = 9;

}  // namespace

ToldPrograms::ToldPrograms(Program training,
                           std::shared_ptr<const Plan> plan,
                           Schedule schedule,
                           Layout layout)
    : schedule_(std::move(schedule)), layout_(std::move(layout)) {
  programs_.push_back({kTraining, std::move(training), std::move(plan), {}});
}

const ToldPrograms::Told& ToldPrograms::told(Crew& crew,
                                             const Program& program,
                                             const Parts& parts) {
  Told& found = known(crew, program);
  for (const std::shared_ptr<const Variant>& variant : parts.variants) {
    if (variant != nullptr && !found.shapes.contains(variant->number)) {
      crew.add_variant(std::make_shared<const JobVariant>(
          JobVariant{.program = found.number,
                     .number = variant->number,
                     .random = variant->random,
                     .stages = replicate(variant->stages, layout_),
                     .plan = nullptr}));
      found.shapes.insert(variant->number);
    }
  }
  return found;
}

ToldPrograms::Told& ToldPrograms::known(Crew& crew, const Program& program) {
  const auto begin = programs_.begin() + 1;
  const auto is_it = [&](const Told& told) { return told.program.shared() == program.shared(); };
  if (program.compiled().evaluates == nullptr) {
    return programs_.front();
  }
  if (const auto found = std::find_if(begin, programs_.end(), is_it); found != programs_.end()) {
    std::rotate(found, found + 1, programs_.end());
    return programs_.back();
  }
  auto number = static_cast<std::int32_t>(programs_.size());
  if (programs_.size() == kMostPrograms) {
    number = begin->number;
  }
  const Program laid_out = replicate(program, layout_);
  const auto plan = std::make_shared<const Plan>(
      lower_schedule(laid_out, schedule_, layout_, /*training=*/false));
  crew.add_variant(
      std::make_shared<const JobVariant>(JobVariant{.program = number,
                                                    .number = 0,
                                                    .random = 0,
                                                    .stages = laid_out.compiled().partition.stages,
                                                    .plan = plan}));
  if (programs_.size() == kMostPrograms) {
    programs_.erase(begin);
  }
  programs_.push_back({number, program, plan, {}});
  return programs_.back();
}

const Plan& ToldPrograms::plan(std::int32_t number) const {
  const auto found = std::ranges::find(programs_, number, &Told::number);
  SC_CHECK(found != programs_.end(), "what is ordered was told before");
  return *found->plan;
}

}  // namespace stagecraft
