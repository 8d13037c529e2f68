# A client's makefile: includes a fragment and uses its variables the way find modules and hand-written makefiles do.
# make -f client.make FRAGMENT=.../ibv-par.mak GASNET_PREFIX=... MODE=par SOURCE=... OUT=...

include $(FRAGMENT)

all: $(OUT) $(OUT)-static $(OUT)-cxx

$(OUT).o: $(SOURCE)
	$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -c $(SOURCE) -o $@
$(OUT)-cxx.o: $(SOURCE)
	$(GASNET_CXX) -x c++ $(GASNET_CXXCPPFLAGS) $(GASNET_CXXFLAGS) -c $(SOURCE) -o $@
$(OUT): $(OUT).o
	$(GASNET_LD) $(GASNET_LDFLAGS) $(OUT).o $(GASNET_LIBS) -o $@
$(OUT)-static: $(OUT).o
	$(GASNET_LD) $(GASNET_LDFLAGS) $(OUT).o $(GASNET_LIBS:-lgasnet-ibv-$(MODE)=$(STATIC_LIBRARY)) -o $@
$(OUT)-cxx: $(OUT)-cxx.o
	$(GASNET_CXX) $(GASNET_LDFLAGS) $(OUT)-cxx.o $(GASNET_LIBS) -o $@

# The lines that find modules print and parse.
show:
	@echo "CC=$(GASNET_CC)"
	@echo "CXX=$(GASNET_CXX)"
	@echo "LD=$(GASNET_LD)"
	@echo "CPPFLAGS=$(GASNET_CPPFLAGS)"
	@echo "CFLAGS=$(GASNET_CFLAGS)"
	@echo "CXXCPPFLAGS=$(GASNET_CXXCPPFLAGS)"
	@echo "CXXFLAGS=$(GASNET_CXXFLAGS)"
	@echo "LDFLAGS=$(GASNET_LDFLAGS)"
	@echo "LIBS=$(GASNET_LIBS)"
	@echo "LD_REQUIRES_MPI=$(GASNET_LD_REQUIRES_MPI)"
	@echo "SPAWNER=$(GASNET_SPAWNER_DEFAULT)"
.PHONY: all show
