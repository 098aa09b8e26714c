/// Is a worker program that knows the classes of remote_actors_test.cc.
#include "stagecraft/actors/launch/worker/worker_main.h"
#include "stagecraft/tests/integration/remote_classes.h"

int main(int argc, char** argv) {
  using namespace stagecraft::tests;
  if (!stagecraft::is_worker(argc, argv)) {
    return 2;
  }
  return stagecraft::worker_main(argc, argv, stagecraft::types<Notebook, Gate>());
}
