#include "stagecraft/scheduler/formats/zero_bubble.h"

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string zero_bubble_complaint(const std::string& text) {
  return refusal([&] { (void)parse_zero_bubble(text); }, Errc::ScheduleParse);
}

std::string not_written_as_lists(const Schedule& schedule) {
  return refusal(
      [&] { (void)write_schedule(schedule, schedule.stage_graph(), find_format("zero-bubble")); },
      Errc::ScheduleParameter);
}

/// Returns a node as the scheduler prints it.
std::string node(const std::string& type, int stage, int chunk, int group) {
  return "ScheduledNode(type=" + type + ", stage=" + std::to_string(stage) +
         ", microbatch=0, chunk=" + std::to_string(chunk) +
         ", seq_split_idx=0, layer_group_idx=" + std::to_string(group) +
         ", start_time=None, completion_time=None, recv_peer_stage=None, send_peer_stage=None, "
         "comm_direction=None, comm_peer_stage=None, comm_pair_id=None, rollback=False, "
         "need_recompute=False, should_offload=False)";
}

TEST_CASE("what the zero-bubble scheduler prints is a list, its B the input half",
          "[scheduler][zero_bubble]") {
  const std::string text = "[[" + node("F", 0, 0, 0) + ", " + node("B", 0, 0, 0) + ", " +
                           node("W", 0, 0, 0) + "], [" + node("F", 1, 0, 1) + ", " +
                           node("BW", 1, 0, 1) + "]]\n";
  CHECK(parse_zero_bubble(text) == Schedule::parse("@form list\n0F0 0I0 0W0\n1F0 1B0"));
}

TEST_CASE("a stage is a group of layers, a row a stage of theirs", "[scheduler][zero_bubble]") {
  const std::string text =
      "[[" + node("FuncType.F", 0, 0, 0) + ", " + node("'F'", 0, 1, 3) + "], []]";
  CHECK(parse_zero_bubble(text) ==
        Schedule(Schedule::Form::List, {{cells::F(0, 0), cells::F(3, 0)}, {}}));
}

TEST_CASE("the zero-bubble scheduler's lists go both ways", "[scheduler][zero_bubble]") {
  CHECK(to_zero_bubble(one_f_one_b(1, 1)) ==
        "[[ScheduledNode(type=F, stage=0, microbatch=0, chunk=0, layer_group_idx=0), "
        "ScheduledNode(type=BW, stage=0, microbatch=0, chunk=0, layer_group_idx=0)]]\n");
  for (const Schedule& schedule :
       {one_f_one_b(4, 8), interleaved(4, 8, 2), zb_h1(4, 8), zb_v(3, 6)}) {
    const std::string text = to_zero_bubble(schedule);
    CHECK(parse_zero_bubble(text) == schedule.to_list());
  }
}

TEST_CASE("chunks count a row's stages", "[scheduler][zero_bubble]") {
  const Schedule wave = zb_v(2, 2);  // row 0: stages 0 and 3
  CHECK_THAT(to_zero_bubble(wave),
             ContainsSubstring("stage=0, microbatch=0, chunk=1, layer_group_idx=3") &&
                 ContainsSubstring("stage=1, microbatch=0, chunk=0, layer_group_idx=1"));
}

TEST_CASE("what is no list of the zero-bubble scheduler is refused with its place",
          "[scheduler][zero_bubble]") {
  CHECK_THAT(
      zero_bubble_complaint("[[" + node("SEND_FORWARD", 0, 0, 0) + "]]"),
      ContainsSubstring("line 1, column 3") && ContainsSubstring("before run_schedule_passes()"));
  CHECK_THAT(zero_bubble_complaint("[[" + node("R", 0, 0, 0) + "]]"),
             ContainsSubstring("found 'R'"));
  CHECK_THAT(zero_bubble_complaint("[[],\n[" + node("F", 0, 0, 0) + "]]"),
             ContainsSubstring("line 2, column 2") && ContainsSubstring("row 1 holds a node"));
  CHECK_THAT(zero_bubble_complaint("[[ScheduledNode(type=F, stage=0, microbatch=0)]]"),
             ContainsSubstring("layer_group_idx= with a number"));
  CHECK_THAT(
      zero_bubble_complaint("[[ScheduledNode(type=F, stage=0, microbatch=0, layer_group_idx=0, "
                            "seq_split_idx=1)]]"),
      ContainsSubstring("seq_split_idx='1'"));
  CHECK_THAT(
      zero_bubble_complaint("[[ScheduledNode(type=F, stage=0, microbatch=0, layer_group_idx=0, "
                            "should_offload=True)]]"),
      ContainsSubstring("should_offload='True'"));
  CHECK_THAT(zero_bubble_complaint("[[Node(type=F)]]"), ContainsSubstring("'Node' is not a node"));
  CHECK_THAT(zero_bubble_complaint("[[None]]"), ContainsSubstring("ScheduledNode(...) only"));
  CHECK_THAT(zero_bubble_complaint("[[]]"), ContainsSubstring("holds no ScheduledNode"));
  std::string rows = "[[" + node("F", 0, 0, 0) + "]";
  for (int r = 0; r < kMaxStages; ++r) {
    rows += ",[]";
  }
  CHECK_THAT(zero_bubble_complaint(rows + "]"), ContainsSubstring("at most 65536 rows"));
}

TEST_CASE("what the zero-bubble scheduler has no word for is refused", "[scheduler][zero_bubble]") {
  CHECK_THAT(not_written_as_lists(dualpipev(2, 4)), ContainsSubstring("overlap group"));
  CHECK_THAT(not_written_as_lists(Schedule::parse("0F0 0B0 0U")),
             ContainsSubstring("0U (row 0, column 2)"));
  CHECK_THAT(not_written_as_lists(Schedule::parse("@frozen 0\n0F0 .\n. 1F0")),
             ContainsSubstring("stage 0 is frozen"));
}

}  // namespace
}  // namespace stagecraft
