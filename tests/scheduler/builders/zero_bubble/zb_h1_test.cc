#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"

#include <algorithm>
#include <vector>

#include "stagecraft/scheduler/builders/interleaved_zb.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h2.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

std::vector<double> span_idle(const Schedule& schedule, const Costs& costs) {
  std::vector<double> list;
  for (const RowTimeline& row : simulate(schedule, schedule.stage_graph(), costs).rows) {
    list.push_back(row.span_idle);
  }
  return list;
}

double worst_idle(const Timeline& timeline) {
  double worst = 0;
  for (const RowTimeline& row : timeline.rows) {
    worst = std::max(worst, row.idle);
  }
  return worst;
}

TEST_CASE("unequal durations leave the published idle times", "[scheduler][builders]") {
  const Costs costs{
      .stages = {
          .usual = {.forward = 4, .backward = 8, .backward_input = 5, .backward_weight = 3}}};
  const Schedule h1 = zb_h1(4, 12);
  CHECK(span_idle(h1, costs) == std::vector<double>{18, 12, 6, 0});
  for (const RowTimeline& row : simulate(h1, h1.stage_graph(), costs).rows) {
    CHECK(row.idle == 18);
  }
  const Schedule looped = interleaved_zb(4, 12, 2);
  for (const RowTimeline& row : simulate(looped, looped.stage_graph(), costs).rows) {
    CHECK(row.idle == 18);
  }
  const Schedule h2 = zb_h2(4, 12);
  CHECK(span_idle(h2, costs) == std::vector<double>{9, 6, 3, 0});
  CHECK(worst_idle(simulate(h2, h2.stage_graph(), costs)) == 12);
  const Schedule plain = one_f_one_b(4, 12);
  CHECK(simulate(plain, plain.stage_graph(), costs).rows[0].idle == 36);

  const Costs equal{.stages = {.usual = {.forward = 3, .backward_input = 3, .backward_weight = 2}}};
  CHECK(span_idle(zb_v(4, 12), equal) == std::vector<double>{6, 4, 2, 0});
  const Costs unequal{
      .stages = {.usual = {.forward = 2, .backward_input = 3, .backward_weight = 2}}};
  CHECK(span_idle(zb_v(4, 12), unequal) == std::vector<double>{6, 5, 4, 3});
}

TEST_CASE("interleaved zero bubble with one chunk is ZB-H1", "[scheduler][builders]") {
  CHECK(interleaved_zb(4, 8, 1) == zb_h1(4, 8));
}

}  // namespace
}  // namespace stagecraft
