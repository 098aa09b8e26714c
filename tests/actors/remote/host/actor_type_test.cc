#include "stagecraft/actors/remote/host/actor_type.h"

#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"

namespace stagecraft {

/// In a namespace, as users' classes are.
class Counter {
 public:
  explicit Counter(int start) : count_(start) {}
  int add(const int& by) { return count_ += by; }
  void reset() noexcept { count_ = 0; }
  [[nodiscard]] std::string text() const { return std::to_string(count_); }
  int hidden() { return 0; }
  using Remote = stagecraft::Remote<Counter(int), &Counter::add, &Counter::reset, &Counter::text>;

 private:
  int count_;
};

namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a class's list gives its name, its constructor and its methods", "[remote][type]") {
  const ActorType type = Counter::Remote::type();
  CHECK(type.name == "stagecraft::Counter");
  CHECK(type.parameters == 1);
  REQUIRE(type.methods.size() == 3);
  CHECK(type.methods[0].name == "stagecraft::Counter::add");
  CHECK(type.methods[1].name == "stagecraft::Counter::reset");
  CHECK(type.methods[2].parameters == 0);
  const auto object = type.make({pack(4)});
  CHECK(unpack<int>(type.methods[0].call(object.get(), {pack(3)})) == 7);
  CHECK(unpack<std::string>(type.methods[2].call(object.get(), {})) == "7");
  CHECK(unpack<std::monostate>(type.methods[1].call(object.get(), {})) == std::monostate());
  CHECK(unpack<std::string>(type.methods[2].call(object.get(), {})) == "0");
}

TEST_CASE("a method has its position in the list, and another one none", "[remote][type]") {
  STATIC_CHECK(Counter::Remote::position<&Counter::add>() == 0);
  STATIC_CHECK(Counter::Remote::position<&Counter::text>() == 2);
  STATIC_CHECK(Counter::Remote::position<&Counter::hidden>() == Counter::Remote::kMethods);
}

TEST_CASE("method names are read from what both compilers print", "[remote][type]") {
  CHECK(detail::method_name("std::string f() [with auto Method = &A::b; std::string = x]") ==
        "A::b");
  CHECK(detail::method_name("std::string f() [Method = &n::A::b]") == "n::A::b");
  CHECK(detail::method_name("std::string f() [with auto Method = (& A::b)]") == "A::b");
  CHECK(detail::method_name("something else") == "something else");
}

TEST_CASE("a type that a worker does not know is refused by name, with what to do",
          "[remote][type]") {
  const ActorTypes none;
  const Error unknown = thrown_error([&] { (void)none.find("Judge", {}); });
  CHECK(unknown.code() == Errc::UsageArgument);
  CHECK_THAT(unknown.message(),
             ContainsSubstring("no actor type Judge, but none at all") &&
                 ContainsSubstring("types<Judge>()"));
  const auto some = types<Counter>();
  CHECK_THAT(thrown_error([&] { (void)some->find("Judge", {}); }).message(),
             ContainsSubstring("but stagecraft::Counter"));
  const Error other = thrown_error([&] { (void)some->find("stagecraft::Counter", {"a", "b"}); });
  CHECK_THAT(
      other.message(),
      ContainsSubstring("other methods of stagecraft::Counter") && ContainsSubstring("a, b there"));
}

}  // namespace
}  // namespace stagecraft
