#include "stagecraft/scheduler/simulate/schedule_figures.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

ScheduleFigures figures_of(const Schedule& schedule, const Costs& costs = {}) {
  return schedule_figures(schedule, schedule.stage_graph(), costs);
}

TEST_CASE("figures of 1F1B are those of the textbook", "[scheduler][figures]") {
  const ScheduleFigures f = figures_of(one_f_one_b(4, 8));
  CHECK(f.stages == 4);
  CHECK(f.makespan == 3 * (8 + 3));
  CHECK(f.bubble == Catch::Approx(3.0 / 11));
  CHECK(f.peak_in_flight == 4);
  CHECK(f.peak_microbatches == 4);
  CHECK(f.peak_bytes == 0);
  CHECK(f.messages == 2 * 3 * 8);
}

TEST_CASE("more stages per device do the same work in the same units", "[scheduler][figures]") {
  const ScheduleFigures f = figures_of(interleaved(4, 8, 2));
  CHECK(f.stages == 8);
  // Narayanan et al. 2021 give the bubble of 1F1B, (P - 1) x (F + B), divided by the chunks.
  CHECK(f.makespan == 3 * 8 + 3 * 3 / 2.0);
  CHECK(f.peak_microbatches == f.peak_in_flight / 2.0);
  CHECK(f.messages == 2 * 7 * 8);
}

TEST_CASE("two copies of a model do half the microbatches each", "[scheduler][figures]") {
  const ScheduleFigures f = figures_of(dualpipe(4, 8));
  CHECK(f.stages == 4);
  CHECK(f.makespan >= 3 * 8);
  CHECK(f.messages == 2 * 3 * 8);
}

TEST_CASE("bytes are those of the row that holds most", "[scheduler][figures]") {
  Costs costs;
  costs.stages.memory.fixed = {100, 200};
  costs.stages.memory.activations = {10, 10};
  CHECK(figures_of(one_f_one_b(2, 4), costs).peak_bytes == 210);
}

TEST_CASE("schedules that cannot run have no figures", "[scheduler][figures][bad-input]") {
  CHECK_THROWS_AS(figures_of(Schedule::parse("0F0 0B0\n1B0 1F0\n")), Error);
}

}  // namespace
}  // namespace stagecraft
