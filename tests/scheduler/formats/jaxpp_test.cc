#include "stagecraft/scheduler/formats/jaxpp.h"

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string jaxpp_complaint(const std::string& text) {
  return refusal([&] { (void)parse_jaxpp(text); }, Errc::ScheduleParse);
}

std::string not_written_for_jaxpp(const Schedule& schedule) {
  return refusal(
      [&] { (void)write_schedule(schedule, schedule.stage_graph(), find_format("jaxpp")); },
      Errc::ScheduleParameter);
}

// JaxPP 0.9.2 prints this for Std1F1B(2).tasks(2).
constexpr const char* kStd1f1b =
    "[[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD, latency=1), "
    "Task(stage_id=0, mubatch_idx=1, fwd_or_bwd=TaskType.FWD, latency=1), None, "
    "Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.BWD, latency=2), None, "
    "Task(stage_id=0, mubatch_idx=1, fwd_or_bwd=TaskType.BWD, latency=2)], "
    "[None, Task(stage_id=1, mubatch_idx=0, fwd_or_bwd=TaskType.FWD, latency=1), "
    "Task(stage_id=1, mubatch_idx=0, fwd_or_bwd=TaskType.BWD, latency=2), "
    "Task(stage_id=1, mubatch_idx=1, fwd_or_bwd=TaskType.FWD, latency=1), "
    "Task(stage_id=1, mubatch_idx=1, fwd_or_bwd=TaskType.BWD, latency=2), None]]\n";

TEST_CASE("what JaxPP prints of its 1F1B is ours", "[scheduler][jaxpp]") {
  CHECK(parse_jaxpp(kStd1f1b) == one_f_one_b(2, 2));
}

TEST_CASE("a task without latency is read, as JaxPP had it before 0.8", "[scheduler][jaxpp]") {
  CHECK(parse_jaxpp("[[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD), None,\n"
                    "  Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.BWD)]]\n") ==
        Schedule::parse("0F0 . 0B0"));
}

TEST_CASE("enumerators are read as Python prints most of them, too", "[scheduler][jaxpp]") {
  CHECK(parse_jaxpp("[[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=<TaskType.FWD: 1>)]]") ==
        Schedule::parse("@form list\n0F0"));
}

TEST_CASE("fused tasks are a whole backward, an overlap group, or their tasks in order",
          "[scheduler][jaxpp]") {
  const auto task = [](int stage, int microbatch, const char* type) {
    return "Task(stage_id=" + std::to_string(stage) +
           ", mubatch_idx=" + std::to_string(microbatch) + ", fwd_or_bwd=TaskType." + type +
           ", latency=1)";
  };
  const std::string halves = task(2, 1, "BWD_I") + ", " + task(2, 1, "BWD_W");
  const auto cells = [](const std::string& item) {
    return to_string(parse_jaxpp("[[" + item + "]]").to_list());
  };
  CHECK(cells("(" + halves + ")") == "@form list\n2B1\n");
  CHECK(cells("FusedTask((" + task(1, 3, "FWD") + ", " + halves + "))") == "@form list\n1F3|2B1\n");
  CHECK(cells("FusedTask([" + task(1, 3, "FWD") + ", " + halves + "])") == "@form list\n1F3|2B1\n");
  // Fuses the last stage's forward and backward, of which one needs the other.
  const Schedule unfolded =
      parse_jaxpp("[[None, (" + task(0, 0, "FWD") + ", " + task(0, 0, "BWD") + ",)]]");
  CHECK(unfolded == Schedule::parse("@form list\n0F0 0B0"));
  // Weight halves of another microbatch stay unchanged.
  CHECK(cells("(" + task(2, 1, "BWD_I") + ", " + task(2, 0, "BWD_W") + ")") ==
        "@form list\n2I1|2W0\n");
}

TEST_CASE("JaxPP's arrays go both ways", "[scheduler][jaxpp]") {
  CHECK(to_jaxpp(one_f_one_b(1, 1)) ==
        "[[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD, latency=1), "
        "Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.BWD, latency=2)]]\n");
  for (const Schedule& schedule :
       {one_f_one_b(4, 8), interleaved(4, 8, 2), zb_v(3, 6), dualpipev(2, 4)}) {
    CHECK(parse_jaxpp(to_jaxpp(schedule)) == schedule);
    CHECK(parse_jaxpp(to_jaxpp(schedule.to_list())) == schedule.to_list());
  }
}

TEST_CASE("a schedule with halves has no whole backward in JaxPP's array", "[scheduler][jaxpp]") {
  const Schedule schedule = dualpipev(2, 4);  // it has both
  CHECK_THAT(to_string(schedule), ContainsSubstring("B") && ContainsSubstring("W"));
  CHECK(to_jaxpp(schedule).find("TaskType.BWD,") == std::string::npos);
}

TEST_CASE("what is no array of JaxPP is refused with its place", "[scheduler][jaxpp]") {
  CHECK_THAT(
      jaxpp_complaint("[[None,\n  Tusk(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD)]]"),
      ContainsSubstring("line 2, column 3") && ContainsSubstring("'Tusk' is not a Task"));
  CHECK_THAT(jaxpp_complaint("[[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.UPD)]]"),
             ContainsSubstring("line 1, column 3") && ContainsSubstring("BWD_I or BWD_W"));
  CHECK_THAT(jaxpp_complaint("[[Task(stage_id=0, fwd_or_bwd=TaskType.FWD)]]"),
             ContainsSubstring("mubatch_idx= with a number") && ContainsSubstring("none"));
  CHECK_THAT(jaxpp_complaint("[[Task(stage_id=70000, mubatch_idx=0, fwd_or_bwd=TaskType.FWD)]]"),
             ContainsSubstring("below 65536") && ContainsSubstring("'70000'"));
  CHECK_THAT(jaxpp_complaint("[[Task(0, 0, TaskType.FWD)]]"),
             ContainsSubstring("write every argument with its name"));
  CHECK_THAT(
      jaxpp_complaint("[[Pair((Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD),))]]"),
      ContainsSubstring("'Pair' is not a FusedTask"));
  CHECK_THAT(jaxpp_complaint("[[Task(stage_id=0, stage_id=1, mubatch_idx=0)]]"),
             ContainsSubstring("'stage_id' appears twice"));
  const char* broken = GENERATE("",
                                "[",
                                "[[",
                                "[[]",
                                "[[]]",
                                "[[None]]",
                                "[[None] None]",
                                "[[Task(]]",
                                "[[Task(stage_id=]]",
                                "[[Task(stage_id='0)]]",
                                "[[None]] more",
                                "[None]",
                                "Task()");
  CAPTURE(broken);
  (void)jaxpp_complaint(broken);
}

TEST_CASE("all faults of a list are told at once", "[scheduler][jaxpp]") {
  CHECK_THAT(
      jaxpp_complaint("[[Tusk(), Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD)],\n"
                      " [Task(stage_id=0, mubatch_idx=x, fwd_or_bwd=TaskType.FWD)]]"),
      ContainsSubstring("2 faults") && ContainsSubstring("line 1, column 3: 'Tusk'") &&
          ContainsSubstring("line 2, column 3: a Task needs mubatch_idx="));
}

TEST_CASE("what JaxPP's array cannot say is refused", "[scheduler][jaxpp]") {
  CHECK_THAT(not_written_for_jaxpp(Schedule::parse("0F0 0B0 0U")),
             ContainsSubstring("JaxPP's array cannot express 0U (row 0, column 2)"));
  CHECK_THAT(not_written_for_jaxpp(Schedule::parse("0F0|0B0")),
             ContainsSubstring("one after the other"));
  CHECK_THAT(not_written_for_jaxpp(Schedule::parse("@edges 0-2,1-2\n0F0 .\n1F0 .\n. 2F0")),
             ContainsSubstring("not part of one chain"));
}

}  // namespace
}  // namespace stagecraft
