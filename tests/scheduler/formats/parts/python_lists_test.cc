#include "stagecraft/scheduler/formats/parts/python_lists.h"

#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::formats {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

/// Reads all and returns it in other words: rows end with ";", None is ".", a tuple has brackets.
std::string reread(std::string_view text) {
  PythonLists lists(text);
  std::string all;
  while (lists.next_row()) {
    while (const auto item = lists.next_item()) {
      all += item->tuple ? std::string(item->tuple_type) + "[" : "";
      for (const PythonCall& call : item->calls) {
        all += std::string(call.name) + "(";
        for (const auto& [name, value] : call.arguments) {
          all += std::string(name) + "=" + std::string(value) + " ";
        }
        all += ")";
      }
      all += item->tuple ? "]" : item->calls.empty() ? "." : "";
    }
    all += ";";
  }
  CHECK(lists.offset() == text.size());
  return all;
}

std::string list_fault(std::string_view text) {
  return refusal([&] { (void)reread(text); }, Errc::ScheduleParse);
}

TEST_CASE("rows of calls are read as Python prints them", "[scheduler][formats]") {
  CHECK(reread("[]").empty());
  CHECK(reread("[[], [None]]\n") == ";.;");
  CHECK(reread("[[a.b.Task(x=1, y=T.FWD), None], [Task()]]") == "Task(x=1 y=T.FWD ).;Task();");
  CHECK(reread("[[(A(), B(),)], [Fused((A(), B()))], [m.Fused([A()])]]") ==
        "[A()B()];Fused[A()B()];Fused[A()];");
  CHECK(reread("[ [ None , ] , ]  ") == ".;");
}

TEST_CASE("a value is a number, a name, a quoted text or a printed enumerator",
          "[scheduler][formats]") {
  CHECK(reread("[[T(a=-1, b='x y', c=\"it's\", d=<Comm.NEXT: 0>, e=None)]]") ==
        "T(a=-1 b=x y c=it's d=Comm.NEXT e=None );");
}

TEST_CASE("a list that is broken is refused at the place of its fault",
          "[scheduler][formats][bad-input]") {
  CHECK_THAT(list_fault(""), ContainsSubstring("line 1, column 1: the list ends too early"));
  CHECK_THAT(list_fault("[[None]"), ContainsSubstring("line 1, column 8: the list ends too early"));
  CHECK_THAT(list_fault("[[None,\n Task(a=1"),
             ContainsSubstring("line 2, column 10: the list ends too early: expected ','"));
  CHECK_THAT(list_fault("[[None]] x"), EndsWith("column 10: 'x' follows the list; leave it out"));
  CHECK_THAT(list_fault("[None]"), ContainsSubstring("expected '[' at the beginning of a row"));
  CHECK_THAT(list_fault("[[None None]]"), ContainsSubstring("expected ',' between two elements"));
  CHECK_THAT(list_fault("[[,]]"), ContainsSubstring("expected a call or None, found ',]]'"));
  CHECK_THAT(list_fault("[[Task]]"), ContainsSubstring("expected '(' after the name of a call"));
  CHECK_THAT(list_fault("[[Task(1)]]"), ContainsSubstring("write every argument with its name"));
  CHECK_THAT(list_fault("[[Task(a=)]]"), ContainsSubstring("expected a value, found ')]]'"));
  CHECK_THAT(list_fault("[[Task(a='x)]]"), ContainsSubstring("does not end: ''x)]]'"));
  CHECK_THAT(list_fault("[[Task(a=1, a=2)]]"), ContainsSubstring("'a' appears twice; keep one"));
  CHECK_THAT(list_fault("[[Fused((A()]]"), ContainsSubstring("expected ','"));
  CHECK_THAT(list_fault("[[Fused((A())]]"), ContainsSubstring("expected ')' after the tuple"));
  CHECK_THAT(list_fault("[[((A()))]]"), ContainsSubstring("expected a call, found"));
  CHECK_THAT(list_fault(std::string_view("[[\0]]", 6)), ContainsSubstring("expected a call or"));
}

TEST_CASE("a number that a call needs is there, whole, and below its end",
          "[scheduler][formats][bad-input]") {
  PythonLists lists("[[T(a=7, b=-1, c=x, d=99999999999)]]");
  REQUIRE(lists.next_row());
  const auto item = lists.next_item();
  REQUIRE(item);
  const PythonCall& call = item->calls.at(0);
  CHECK(lists.number(call, "a", 8) == 7);
  const auto fault = [&](std::string_view name) {
    return refusal([&] { (void)lists.number(call, name, 7); }, Errc::ScheduleParse);
  };
  CHECK(fault("a") == "line 1, column 3: a T needs a= with a number below 7, found '7'");
  CHECK_THAT(fault("b"), EndsWith("found '-1'"));
  CHECK_THAT(fault("c"), EndsWith("found 'x'"));
  CHECK_THAT(fault("d"), EndsWith("found '99999999999'"));
  CHECK_THAT(fault("e"), EndsWith("found none"));
}

}  // namespace
}  // namespace stagecraft::formats
