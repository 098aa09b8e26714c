# What `cmake --install` puts where, and what find_package(stagecraft) finds there.
#
# Two export sets: stagecraft::scheduler is usable where neither LibTorch nor CAF is.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/stagecraft")

get_property(layers GLOBAL PROPERTY STAGECRAFT_LAYERS)
foreach(layer IN LISTS layers)
  if(layer MATCHES "^stagecraft_(base|scheduler)$")
    list(APPEND scheduler_targets ${layer})
  else()
    list(APPEND runtime_targets ${layer})
  endif()
endforeach()
install(TARGETS ${scheduler_targets} EXPORT stagecraft-scheduler-targets)
install(TARGETS ${runtime_targets} stagecraft_runtime EXPORT stagecraft-runtime-targets)
foreach(set IN ITEMS scheduler runtime)
  install(EXPORT stagecraft-${set}-targets NAMESPACE stagecraft:: DESTINATION ${package_dir})
endforeach()

install(DIRECTORY base scheduler futures compiler actors
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stagecraft" FILES_MATCHING PATTERN "*.h")
install(FILES stagecraft.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stagecraft")
install(TARGETS stagecraft)

configure_package_config_file(cmake/stagecraftConfig.cmake.in
  "${PROJECT_BINARY_DIR}/stagecraftConfig.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/stagecraftConfig.cmake"
  "${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake"
  cmake/FindLibTorch.cmake cmake/FindCAF.cmake cmake/FindZeroMQ.cmake
  DESTINATION ${package_dir})
