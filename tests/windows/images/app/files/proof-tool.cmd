@echo found by its name
